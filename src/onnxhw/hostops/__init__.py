"""What the host computes of a model: onnxruntime's kernels, one node at a time, and operators of our own.

evaluate     the outputs of a model from its inputs                     (evaluator.py, nodes.py, value_checks.py)
implemented  whether the host has an operator, for some types           (single_node.py)
native       one node in onnxruntime                          (onnxruntime_node.py)
operators    those that must be exact, and what onnxruntime lacks       (operators/)
in_worker    a node of constants, in a worker of bounded memory and time (in_worker.py)
"""

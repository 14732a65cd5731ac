"""From a prepared ONNX model to operations of the integer graph, and to nodes that are the host's.

convert      nodes -> operations and host nodes                 (conversion.py, context.py, host_nodes.py)
values       what a value of the graph is while it is converted (values.py, value_range.py, static_model.py)
handlers     one per operator                                   (handlers.py, operators/, dialects/)
fold         nodes whose inputs are all known                   (constant_folding.py)
Blocker      why a node cannot be mapped                        (blockers.py)
opset_doc    which operators have a handler, as ONNX says it    (opset_doc.py)
"""

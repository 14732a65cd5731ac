"""From a prepared ONNX model to operations of the integer graph, and to nodes that are the host's.

convert      nodes -> operations and host nodes                 (conversion.py, context.py, hosting.py)
values       what a value of the graph is while it is converted (values.py, reach.py, static.py)
handlers     one per operator                                   (handlers.py, operators/, dialects/)
fold         nodes whose inputs are all known                   (fold.py)
Blocker      why a node cannot be mapped                        (blockers.py)
opset_doc    which operators have a handler, as ONNX says it    (opset_doc.py)
"""

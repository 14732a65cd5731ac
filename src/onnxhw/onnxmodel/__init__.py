"""The ONNX model as such: from a file to one that is checked, specialised and plain. It knows nothing of the hardware.

prepare        all of it                                              (prepared.py)
read_model     file or bytes -> checked onnx.ModelProto               (read.py)
diagnose       the rules of the ONNX specification                    (specification/)
normalise      one way to write what can be written in several        (normal_form.py, legacy_domains.py)
inline, unroll functions, and control flow of known course            (inline.py, unroll.py, bodies.py)
specialise     static shapes                                          (shapes.py, inference.py, confined.py)
settled        open first dimensions                                  (dynamic_batch.py)
one_sample     whether samples are independent, and a model of one    (batch.py, mixing.py, persample.py)
Node           a node in plain Python                                 (nodes.py)
"""

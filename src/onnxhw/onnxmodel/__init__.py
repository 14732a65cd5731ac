"""The ONNX model as such: from a file to one that is checked, specialised and plain. It knows nothing of the hardware.

prepare             all of it                                        (prepared.py)
read_model          file or bytes -> checked onnx.ModelProto       (read.py)
diagnose            the rules of the ONNX specification            (specification/)
normalise           one way to write what can be written in several (normal_form.py, legacy_domains.py)
inline, unroll      functions, and control flow of known course    (inline.py, unroll.py, subgraph_copy.py)
specialise          static shapes                                  (shapes.py, inference.py, in_worker.py)
resolve_open_batch  open first dimensions                          (dynamic_batch.py)
one_sample          independence of samples      (batch_analysis.py, batch_dependence.py, batching_rules.py)
Node                a node in plain Python                         (nodes.py)
"""

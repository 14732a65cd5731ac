"""The model file, from bytes to a ModelProto: nothing in it is trusted before it was checked.

limits      how large anything may be                 (limits.py)
container   the file's bytes, and its outermost fields (container.py)
survey      every graph, tensor and name, counted       (survey.py)
external    tensors in files beside the model           (external.py)
elements    element types and how they are stored       (elements.py)
payload     one tensor's data, checked and decoded      (payload.py)
sparse      sparse tensors                              (sparse.py)
textual     models as text or JSON                      (textual.py)
"""

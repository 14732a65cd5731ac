"""The differential of the host's operators: every operator that onnxruntime implements, over random models.

registry    operators, versions and element types, from onnx's schemas and onnxruntime's kernels
draw        one random model: choices that fill the coverage, values near edges
operators   what a valid node of each operator looks like
sides       the same model in the product, in onnxruntime, and in onnx's reference evaluator with our operators
compare     when two results are equal: by operator, with the reason
formulas    operators of ai.onnx.ml in numpy, a third side
explained   differences that the operator's text settles, with the quotation
run         models of one operator, in a process of its own
coverage    what was tried, as JSON and Markdown
"""

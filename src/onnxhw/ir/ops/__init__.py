"""The operations of the integer graph, each with its whole specification (`onnxhw.ir.operation`)."""

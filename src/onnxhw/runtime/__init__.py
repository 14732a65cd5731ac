"""The one way to run a program: a model on hardware and host as a whole.

InferenceSession  a model, compiled or from a program file, that is run      (session.py)
inputs            what a session is fed                                      (inputs.py)
executors         the parts of a program in turn                             (executors.py)
executor_names    what a session runs, and on what                           (executor_names.py)
loading           any program file, proved                                   (loading.py)
"""

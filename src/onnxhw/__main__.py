"""``python -m onnxhw`` is the command ``onnxhw``."""

import sys

from .cli import main

sys.exit(main())

"""What happened and where the cycles went: tables, ``report.html``, ``trace.json``.

Everything is computed from the program alone (its exact timeline), plus what a manifest knows about a
routed design and what a simulation found.
"""

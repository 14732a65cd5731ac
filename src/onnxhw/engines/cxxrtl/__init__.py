"""CXXRTL: designs in Amaranth compiled to native code; the core, or anything with ports."""

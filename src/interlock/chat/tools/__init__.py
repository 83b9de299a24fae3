"""Tool packs, one module or package each."""

"""`interlock approvals watch`: the live list at a terminal, and its lines where nobody looks."""

"""`interlock approvals watch`: the live list on a terminal, and a stream of lines elsewhere."""

"""Policies, scripted partners and language models; import as `jaxscope.agents`."""

if __name__ != "jaxscope.agents":
    raise ImportError("import jaxscope.agents, not agents: the latter makes a second copy of every class")

"""Environments in pure JAX, one file each; import as `jaxscope.envs`."""

if __name__ != "jaxscope.envs":
    raise ImportError("import jaxscope.envs, not envs: the latter makes a second copy of every class")

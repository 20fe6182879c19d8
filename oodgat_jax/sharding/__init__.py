"""Many devices and many hosts: the mesh, and graphs spread over it."""

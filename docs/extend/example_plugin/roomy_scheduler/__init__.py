"""An example of scheduler plug-ins in a package of their own."""

"""k3lib: how should an organisation serve Kimi K3 itself? Facts, equations and numbers with a trail."""

import os

if "K3_READS" in os.environ:  # a build asks which facts a notebook reads, from the first import on
    from k3lib.kept import watch

    watch(os.environ["K3_READS"])

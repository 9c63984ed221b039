"""What tests require beyond the oldest Python with which the platform runs."""

import tarfile

import pytest

#: The image-builder unpacks archives only in its image, whose Python has filters; Debian 12 has Python 3.11.2.
UNPACKS = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="unpacking needs the filters of tarfile, which Python 3.11.4 added"
)

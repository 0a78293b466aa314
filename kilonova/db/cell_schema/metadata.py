"""The one MetaData of a cell database."""

import sqlalchemy as sa

metadata = sa.MetaData()

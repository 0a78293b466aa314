"""The one MetaData of the API database."""

import sqlalchemy as sa

metadata = sa.MetaData()

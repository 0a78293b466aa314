"""Images: records and bytes, in the shapes of Glance's v2 API."""

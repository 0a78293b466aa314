"""`[quota]`: default limits; -1 is unlimited."""

from __future__ import annotations

from oslo_config import cfg

OPTS = (
    cfg.IntOpt("instances", default=10, min=-1, help="Servers of a project."),
    cfg.IntOpt("cores", default=20, min=-1, help="Virtual CPUs of a project."),
    cfg.IntOpt("ram", default=51200, min=-1, help="MiB of memory of a project."),
    cfg.IntOpt("metadata_items", default=128, min=-1, help="Metadata items of a server."),
    cfg.IntOpt("injected_files", default=5, min=-1, help="Files in a create request."),
    cfg.IntOpt("injected_file_content_bytes", default=10240, min=-1, help="Bytes of such a file."),
    cfg.IntOpt("injected_file_path_length", default=255, min=-1, help="Characters of its path."),
    cfg.IntOpt("key_pairs", default=100, min=-1, help="Key pairs of a user."),
    cfg.IntOpt("server_groups", default=10, min=-1, help="Server groups of a project."),
    cfg.IntOpt("server_group_members", default=10, min=-1, help="Servers of a group."),
)

"""A real RTSP server (GStreamer's) in a process of its own, run by the system's Python that has its bindings.

python3 rtsp_server.py PIPELINE -> prints the port
"""

from __future__ import annotations

import sys


def main(pipeline: str) -> None:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer

    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(sys.argv[2] if len(sys.argv) > 2 else "0")
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {pipeline} )")
    factory.set_shared(True)
    server.get_mount_points().add_factory("/road", factory)
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(sys.argv[1])

from __future__ import annotations

from typing import Any


def test_smoke(admin: Any, demo: Any, other: Any, service: Any, notifier: Any, app: Any) -> None:
    for plural in ("networks", "subnets", "ports", "routers", "floatingips", "security-groups", "security-group-rules", "extensions"):
        print(plural, demo.get("/" + plural))
    private = demo.get("/networks?name=private")["networks"][0]
    public = demo.get("/networks?router:external=True")["networks"][0]
    p = demo.make("port", network_id=private["id"], name="p")
    print(p)
    app.start()
    print(service.put("port", p["id"], device_id="5d1dd49e-5b6c-4d7b-9ad4-5d1dd49e5b6c", device_owner="compute:nova", binding__host_id="h1"))
    f = demo.make("floatingip", floating_network_id=public["id"], port_id=p["id"])
    print(f)
    print(demo.ask("DELETE", f"/ports/{p['id']}"))
    print(demo.get(f"/floatingips/{f['id']}"))
    app.stop()
    print(notifier.batches)
    print(other.get("/auto-allocated-topology/pother"))
    print(other.get("/quotas/pother/details.json"))
    print(other.ask("DELETE", "/auto-allocated-topology/pother"))

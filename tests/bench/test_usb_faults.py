"""A small campaign of damaged USB packets; and one with a host that takes packets twice, which must show."""

import pytest
from usb_faults import Case, UsbCampaign
from usb_host.host import UsbHost

pytestmark = [pytest.mark.rtl, pytest.mark.slow]
pytest.importorskip("luna", reason="the gateware of the USB link needs luna-usb")


@pytest.mark.parametrize("case", [Case("packets", 0.05, 20), Case("unplugged", 0.0, 2)], ids=lambda case: case.name)
def test_no_fault_goes_undetected(case: Case) -> None:
    found = UsbCampaign().run(case)
    assert found.injected >= case.faults
    assert (found.undetected, found.wrong, found.hangs) == (0, 0, 0)
    assert bool(found.errors) is bool(case.rate)
    assert found.given_up or case.rate


def test_a_host_without_data_toggles_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(host: UsbHost) -> bytes:
        answer = host.bus.receive(host._address, host.port.in_endpoint)  # type: ignore[union-attr]
        return answer.data if answer and answer.data else b""

    monkeypatch.setattr(UsbHost, "read", read)
    found = UsbCampaign().run(Case("packets", 0.05, 60))
    assert found.undetected + found.wrong > 0

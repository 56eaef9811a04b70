//! Names are the same in the code and on the wire.

use super::*;

#[test]
fn names_agree_with_the_wire() {
    for name in [
        "session.created",
        "turn.resumed",
        "tool_call.unknown",
        "approval.cancelled",
        "model.retrying",
    ] {
        let kind = EventType::from_name(name).unwrap();
        assert_eq!(kind.name(), name);
        assert_eq!(serde_json::to_value(kind).unwrap(), name);
    }
    let beat = EventBody::Heartbeat(HeartbeatData { at: Timestamp(0) });
    assert_eq!(serde_json::to_value(&beat).unwrap()["type"], beat.name());
}

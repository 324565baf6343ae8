//! The journal of trouble: what it holds is what the counters count.

use base::Duration;
use inet::{Config, Count, Event, EventKind, JOURNAL_EVENTS_MAX, Offloads, Resent, State, What};
use sim::{Flows, Host, Plan, Weather, World, for_each_seed};

/// A tenth of all frames is lost.
const STORM: Weather = Weather {
    loss: 10,
    ..Weather::FAIR
};

fn events(host: &Host) -> Vec<Event> {
    host.stack.journal().copied().collect()
}

fn resent(events: &[Event], wanted: Resent) -> u64 {
    let wanted = What::Retransmit(wanted);
    events.iter().filter(|event| event.what == wanted).count() as u64
}

#[test]
fn each_retransmission_is_in_the_journal_with_the_reason_that_was_counted() {
    let mut seen = 0;
    for_each_seed(20, |seed| {
        let config = Config::default();
        let mut world = World::with_config(seed, STORM, Offloads::default(), config);
        let plan = Plan {
            bytes: Some(100_000),
            ..Plan::default()
        };
        let mut flows = Flows::new(&mut world, &[plan]);
        flows.run(&mut world, Duration::from_secs(20));
        for host in [&world.left, &world.right] {
            let events = events(host);
            for kind in EventKind::ALL {
                let of_kind = events.iter().filter(|event| event.what.kind() == kind);
                let is_whole = of_kind.count() < JOURNAL_EVENTS_MAX;
                assert!(is_whole, "SEED={seed}: more than fits");
            }
            let count = |what| host.stack.stats().counts.get(what);
            let probes = resent(&events, Resent::Probe);
            let fast = resent(&events, Resent::Fast);
            let late = resent(&events, Resent::Timeout);
            let syns = resent(&events, Resent::Syn);
            assert_eq!(probes, count(Count::ProbeRetransmits), "SEED={seed}");
            assert_eq!(fast, count(Count::FastRetransmits), "SEED={seed}");
            assert_eq!(late, count(Count::SlowStartRetransmits), "SEED={seed}");
            let all = count(Count::Retransmits);
            assert_eq!(probes + fast + late + syns, all, "SEED={seed}");
            let opens = |event: &&Event| {
                event.what == What::Retransmit(Resent::Syn)
                    && !matches!(event.state, State::SynSent | State::SynReceived)
            };
            assert_eq!(events.iter().find(opens), None, "SEED={seed}");
            seen += all;
        }
    });
    assert!(seen > 0, "no seed lost anything");
}

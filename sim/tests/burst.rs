//! More clients at once than the program's backlog admits.

use base::Duration;
use inet::{Count, DropReason, Endpoint, Offloads, SocketId, State, Transport};
use sim::{Host, Side, Weather, World};

const OFFLOADS: Offloads = Offloads {
    checksum: true,
    segment_v4: true,
    segment_v6: true,
};
const PORT: u16 = 80;
const BACKLOG: usize = 8;
/// As many are ready before the queue is full (listen(2)).
const PLACES: usize = BACKLOG + 1;
/// Far below what a SYN waits before it is repeated.
const MOMENT: Duration = Duration::from_millis(5);

/// A server on the right and clients on the left.
struct Scene {
    world: World,
    listener: SocketId,
    clients: Vec<SocketId>,
}

impl Scene {
    fn listening() -> Self {
        let mut world = World::new(1, Weather::FAIR, OFFLOADS);
        let host = world.host(Side::Right);
        let listener = host.stack.open(Transport::Tcp).expect("a socket");
        let here = Endpoint {
            port: PORT,
            ..Endpoint::ANY
        };
        host.stack.bind(listener, here).expect("a free port");
        host.stack
            .listen(listener, BACKLOG)
            .expect("a bound socket");
        let clients = Vec::new();
        Self {
            world,
            listener,
            clients,
        }
    }

    /// The queue is full, and nobody accepts.
    fn full() -> Self {
        let mut scene = Self::listening();
        for _ in 0..PLACES {
            scene.connect();
            scene.world.run_for(MOMENT);
        }
        assert_eq!(scene.established(), PLACES);
        scene
    }

    fn connect(&mut self) -> SocketId {
        let Host { stack, env } = self.world.host(Side::Left);
        let client = stack.open(Transport::Tcp).expect("a socket");
        let to = Endpoint::v4(Host::address(2), PORT);
        stack.connect(env, client, to).expect("a route");
        self.clients.push(client);
        client
    }

    fn accept(&mut self) -> bool {
        let Host { stack, env } = self.world.host(Side::Right);
        let is_accepted = stack.accept(env, self.listener).is_ok();
        self.world.run_for(MOMENT);
        is_accepted
    }

    fn established(&mut self) -> usize {
        let stack = &self.world.host(Side::Left).stack;
        let is_open = |client: &&SocketId| stack.state(**client) == Ok(State::Established);
        self.clients.iter().filter(is_open).count()
    }

    /// Of the server, its listener included.
    fn entries(&mut self) -> usize {
        self.world.host(Side::Right).stack.connections().count()
    }

    fn held(&mut self) -> u64 {
        let stats = self.world.host(Side::Right).stack.stats();
        stats.counts.get(Count::SynsHeld)
    }

    fn dropped(&mut self, why: DropReason) -> u64 {
        self.world.host(Side::Right).stack.stats().drops.get(why)
    }
}

#[test]
fn a_burst_is_answered_as_fast_as_it_is_accepted() {
    let mut scene = Scene::full();
    for _ in 0..BACKLOG {
        scene.connect();
    }
    scene.world.run_for(MOMENT);
    assert_eq!(scene.established(), PLACES);
    for accepted in 1..=BACKLOG {
        assert!(scene.accept());
        assert_eq!(scene.established(), PLACES + accepted);
    }
    assert_eq!(scene.held(), BACKLOG as u64);
    assert_eq!(scene.dropped(DropReason::AcceptQueueFull), 0);
    let stats = scene.world.host(Side::Left).stack.stats();
    assert_eq!(stats.counts.get(Count::Retransmits), 0);
}

#[test]
fn a_burst_of_twice_the_backlog_is_served_without_a_repetition() {
    let mut scene = Scene::listening();
    for _ in 0..2 * BACKLOG {
        scene.connect();
    }
    scene.world.run_for(MOMENT);
    assert_eq!(scene.established(), 2 * BACKLOG);
    assert!((0..2 * BACKLOG).all(|_| scene.accept()));
    assert_eq!(scene.dropped(DropReason::AcceptQueueFull), 0);
    let stats = scene.world.host(Side::Left).stack.stats();
    assert_eq!(stats.counts.get(Count::Retransmits), 0);
}

#[test]
fn no_more_syns_are_held_than_the_backlog_says() {
    let mut scene = Scene::full();
    for _ in 0..BACKLOG + 3 {
        scene.connect();
    }
    scene.world.run_for(MOMENT);
    assert_eq!(scene.held(), BACKLOG as u64);
    assert_eq!(scene.dropped(DropReason::AcceptQueueFull), 3);
}

#[test]
fn a_syn_that_was_repeated_opens_one_connection() {
    let mut scene = Scene::full();
    scene.connect();
    scene.world.run_for(Duration::from_millis(1500));
    assert_eq!(scene.held(), 2);
    for _ in 0..PLACES {
        assert!(scene.accept());
    }
    assert_eq!(scene.established(), PLACES + 1);
    assert_eq!(scene.dropped(DropReason::Unexpected), 1);
    assert!(scene.accept());
    assert!(!scene.accept());
}

#[test]
fn a_syn_is_not_held_for_longer_than_peers_wait() {
    let mut scene = Scene::full();
    scene.connect();
    // It comes at 0, 1, 3 and 7 seconds.
    scene.world.run_for(Duration::from_secs(12));
    assert_eq!(scene.held(), 4);
    assert!(scene.accept());
    assert_eq!(scene.dropped(DropReason::AcceptQueueFull), 3);
    assert_eq!(scene.established(), PLACES + 1);
}

#[test]
fn a_client_that_gave_up_takes_no_place_in_the_queue() {
    let mut scene = Scene::full();
    let before = scene.entries();
    let client = scene.connect();
    scene.world.run_for(MOMENT);
    let Host { stack, env } = scene.world.host(Side::Left);
    stack.close(env, client).expect("it is ours");
    for _ in 0..PLACES {
        assert!(scene.accept());
    }
    assert!(!scene.accept());
    assert_eq!(scene.entries(), before);
}

//! Connections that move to another stack of the same address while bytes are under way.

use base::Duration;
use inet::{
    Config, Count, DropReason, Endpoint, Error, Offloads, Shutdown, SocketId, State, TcpSnapshot,
    Transport,
};
use sim::{Host, Random, Side, Weather, World, for_each_seed};

const PORT: u16 = 7;
const BUFFERS: usize = 2048;
/// More turns than any transfer here needs.
const TURNS_MAX: u64 = 400_000;

/// What one program does with its connection.
struct Program {
    side: Side,
    socket: SocketId,
    to_send: Vec<u8>,
    sent: usize,
    expected: Vec<u8>,
    received: usize,
    is_shut: bool,
    /// It has read the end of the peer's stream, and all of its own has arrived.
    is_ended: bool,
}

/// Two programs over one connection, each on a host that has a spare stack.
struct Exchange {
    world: World,
    /// The stacks that do not serve the hosts now.
    spares: [Host; 2],
    programs: [Program; 2],
    /// How often programs feel like reading, in percent.
    eagerness: u8,
    moves: u32,
}

fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    let words = (0..len.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes());
    words.take(len).collect()
}

impl Exchange {
    /// An open connection; both ends will send so many bytes.
    fn new(seed: u64, weather: Weather, lens: [usize; 2]) -> Self {
        let mut world = World::new(seed, Weather::FAIR, Offloads::default());
        let sockets = connect(&mut world);
        world.change_weather(weather);
        let [left, right] = lens.map(|len| bytes(&mut world.random, len));
        let program = |side, to_send: &[u8], expected: &[u8]| Program {
            side,
            socket: sockets[side as usize],
            to_send: to_send.to_vec(),
            sent: 0,
            expected: expected.to_vec(),
            received: 0,
            is_shut: false,
            is_ended: false,
        };
        let programs = [
            program(Side::Left, &left, &right),
            program(Side::Right, &right, &left),
        ];
        let spare = |number| {
            Host::new(
                number,
                seed ^ 0xff,
                Offloads::default(),
                Config::default(),
                BUFFERS,
            )
        };
        Self {
            world,
            spares: [spare(1), spare(2)],
            programs,
            eagerness: 70,
            moves: 0,
        }
    }

    fn host(&mut self, side: Side) -> (&mut Host, SocketId) {
        let socket = self.programs[side as usize].socket;
        (self.world.host(side), socket)
    }

    fn state(&mut self, side: Side) -> State {
        let (host, socket) = self.host(side);
        host.stack.state(socket).expect("our socket")
    }

    /// Takes the connection out of its stack.
    fn export(&mut self, side: Side) -> Result<TcpSnapshot, Error> {
        let (host, socket) = self.host(side);
        host.stack.export(&mut host.env, socket)
    }

    /// Puts it into the spare stack, which serves the host from now on.
    fn import(&mut self, side: Side, snapshot: &TcpSnapshot) {
        let own = match side {
            Side::Left => &mut self.world.left,
            Side::Right => &mut self.world.right,
        };
        std::mem::swap(own, &mut self.spares[side as usize]);
        let host = self.world.host(side);
        let socket = host.stack.open(Transport::Tcp).expect("a socket");
        host.stack
            .import(&mut host.env, socket, snapshot)
            .expect("a free name of ours");
        self.programs[side as usize].socket = socket;
        self.moves += 1;
    }

    /// Moves a connection, if it is one; the host has none for so long.
    fn pass_on(&mut self, side: Side, pause: Duration) {
        let Ok(snapshot) = self.export(side) else {
            return;
        };
        const SLICES: u32 = 4;
        for _ in 0..SLICES {
            self.advance(side.peer());
            self.world.run_for(pause / SLICES);
        }
        self.import(side, &snapshot);
    }

    fn advance(&mut self, side: Side) {
        let program = &mut self.programs[side as usize];
        if !program.is_ended {
            program.advance(&mut self.world, self.eagerness);
        }
        self.world.carry();
    }

    fn is_over(&self) -> bool {
        self.programs.iter().all(|program| program.is_ended)
    }

    /// Lets both programs work and time pass, once.
    fn turn(&mut self) {
        self.advance(Side::Left);
        self.advance(Side::Right);
        if !self.world.step() {
            self.world.run_for(Duration::from_millis(1));
        }
        self.check_resets();
    }

    /// While both ends know the connection, nobody is told to go away. (Later, an end that has
    /// forgotten it answers what still comes in the only way there is.)
    fn check_resets(&mut self) {
        let states = [Side::Left, Side::Right].map(|side| self.state(side));
        if states
            .iter()
            .any(|state| matches!(state, State::Closed | State::TimeWait))
        {
            return;
        }
        let hosts = [&self.world.left, &self.world.right];
        for host in hosts.into_iter().chain(&self.spares) {
            assert_eq!(host.stack.stats().counts.get(Count::ResetsOut), 0);
        }
    }

    /// Runs to the end without another move.
    fn finish(&mut self) {
        let mut turns = 0;
        while !self.is_over() {
            self.turn();
            turns += 1;
            assert!(turns < TURNS_MAX, "no end in sight: {}", self.describe());
        }
        self.check_end();
    }

    fn describe(&mut self) -> String {
        let each = [Side::Left, Side::Right].map(|side| {
            let (host, socket) = self.host(side);
            let info = host.stack.info(socket);
            let program = &self.programs[side as usize];
            let (sent, received) = (program.sent, program.received);
            format!("{side:?}: sent {sent} received {received} {info:?}")
        });
        format!("{} moves; {each:?}", self.moves)
    }

    /// Both programs have seen the end of a whole stream, and nothing of it is left behind.
    fn check_end(&mut self) {
        for side in [Side::Left, Side::Right] {
            let (host, socket) = self.host(side);
            host.stack.close(&mut host.env, socket).expect("our socket");
        }
        let mut turns = 0;
        while self.world.left.stack.sockets_used() + self.world.right.stack.sockets_used() > 0 {
            assert!(self.world.step(), "sockets are left behind");
            turns += 1;
            assert!(turns < TURNS_MAX, "sockets never end");
        }
        let hosts = [&self.world.left, &self.world.right];
        for host in hosts.into_iter().chain(&self.spares) {
            assert_eq!(host.stack.stats().counts.get(Count::TimedOut), 0);
            assert_eq!(host.stack.sockets_used(), 0);
            assert_eq!(host.stack.tcp_memory(), 0, "bytes billed to nobody");
            assert_eq!(host.stack.buffers_grown(), 0);
        }
    }

    fn count(&self, side: Side, what: Count) -> u64 {
        let host = match side {
            Side::Left => &self.world.left,
            Side::Right => &self.world.right,
        };
        host.stack.stats().counts.get(what)
    }
}

/// A connection from the left host to the right one.
fn connect(world: &mut World) -> [SocketId; 2] {
    let right = world.host(Side::Right);
    let listener = right.stack.open(Transport::Tcp).expect("a socket");
    let here = Endpoint {
        port: PORT,
        ..Endpoint::ANY
    };
    right.stack.bind(listener, here).expect("a free port");
    right.stack.listen(listener, 4).expect("a bound socket");
    let left = world.host(Side::Left);
    let socket = left.stack.open(Transport::Tcp).expect("a socket");
    let there = Endpoint::v4(Host::address(2), PORT);
    left.stack
        .connect(&mut left.env, socket, there)
        .expect("a route");
    let mut accepted = None;
    world.run_until(1000, |world| {
        let right = world.host(Side::Right);
        accepted = accepted.or(right.stack.accept(&mut right.env, listener).ok());
        accepted.is_some()
    });
    let right = world.host(Side::Right);
    right
        .stack
        .close(&mut right.env, listener)
        .expect("our listener");
    [socket, accepted.expect("a connection")]
}

impl Program {
    fn advance(&mut self, world: &mut World, eagerness: u8) {
        let chunk = 1 + world.random.below(8000) as usize;
        let may_read = world.random.chance(eagerness);
        let host = world.host(self.side);
        self.write(host, chunk);
        if may_read {
            self.read(host, chunk);
        }
    }

    fn write(&mut self, host: &mut Host, chunk: usize) {
        while self.sent < self.to_send.len() {
            let rest = &self.to_send[self.sent..];
            let most = rest.len().min(chunk);
            let mut at = 0;
            let mut fill = |space: &mut [u8]| {
                space.copy_from_slice(&rest[at..at + space.len()]);
                at += space.len();
                space.len()
            };
            let sent = host
                .stack
                .send_with(&mut host.env, self.socket, most, &mut fill);
            match sent {
                Ok(bytes) => self.sent += bytes,
                Err(Error::WouldBlock) => return,
                Err(error) => panic!("{:?} cannot send: {error:?}", self.side),
            }
        }
        if !self.is_shut {
            host.stack
                .shutdown(&mut host.env, self.socket, Shutdown::Write)
                .expect("an open stream");
            self.is_shut = true;
        }
    }

    fn read(&mut self, host: &mut Host, chunk: usize) {
        loop {
            let (expected, mut at) = (&self.expected, self.received);
            let mut take = |bytes: &[u8]| {
                let wanted = expected.get(at..at + bytes.len());
                assert_eq!(wanted, Some(bytes), "at byte {at}");
                at += bytes.len();
                bytes.len()
            };
            let read = host
                .stack
                .recv_with(&mut host.env, self.socket, chunk, &mut take);
            match read {
                Ok(0) => {
                    assert_eq!(self.received, self.expected.len(), "the stream ended early");
                    // A closed connection gives up sooner, so the last acknowledgement is
                    // waited for.
                    let state = host.stack.state(self.socket);
                    self.is_ended = matches!(state, Ok(State::TimeWait | State::Closed));
                    return;
                }
                Ok(bytes) => self.received += bytes,
                Err(Error::WouldBlock) => return,
                Err(error) => panic!("{:?} cannot receive: {error:?}", self.side),
            }
        }
    }
}

/// Some weather, from fair to foul.
fn weather_of(random: &mut Random) -> Weather {
    let mut up_to = |most: u64| random.below(most + 1);
    Weather {
        loss: up_to(15) as u8,
        duplication: up_to(5) as u8,
        reordering: up_to(20) as u8,
        delay: Duration::from_micros(50 + up_to(20_000)),
        bandwidth: 200_000 + up_to(20_000_000),
        ..Weather::FAIR
    }
}

fn pause_of(random: &mut Random) -> Duration {
    match random.below(3) {
        0 => Duration::ZERO,
        1 => Duration::from_micros(random.below(2000)),
        _ => Duration::from_millis(random.below(800)),
    }
}

#[test]
fn bytes_and_ends_arrive_once_however_often_both_ends_move() {
    for_each_seed(60, |seed| {
        let mut random = Random::new(seed ^ 0x5eed);
        let lens = [0, 1].map(|_| random.below(400_000) as usize);
        let weather = weather_of(&mut random);
        let mut exchange = Exchange::new(seed, weather, lens);
        exchange.eagerness = 10 + random.below(90) as u8;
        let moves = 1 + random.below(20) as u32;
        let mut turns = 0;
        while !exchange.is_over() {
            exchange.turn();
            turns += 1;
            assert!(turns < TURNS_MAX, "no end: {}", exchange.describe());
            if exchange.moves < moves && random.chance(2) {
                let side = match random.chance(70) {
                    true => Side::Left,
                    false => Side::Right,
                };
                exchange.pass_on(side, pause_of(&mut random));
            }
        }
        exchange.check_end();
    });
}

#[test]
fn a_connection_moves_in_every_state_that_has_one() {
    let states = [
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::LastAck,
        State::Closing,
    ];
    let mut seen = Vec::new();
    for_each_seed(36, |seed| {
        let mut random = Random::new(seed);
        let much = 400_000 + random.below(100_000) as usize;
        let lens = [[much, 100], [100, much], [100, 100]][seed as usize % 3];
        let slow = Weather {
            delay: Duration::from_millis(20),
            loss: 3,
            ..Weather::FAIR
        };
        let mut exchange = Exchange::new(seed, slow, lens);
        let wanted = states[(seed as usize / 3) % states.len()];
        let mut turns = 0;
        while !exchange.is_over() {
            for side in [Side::Left, Side::Right] {
                if exchange.state(side) == wanted && exchange.moves < 3 {
                    exchange.pass_on(side, pause_of(&mut random));
                    seen.push(wanted);
                }
            }
            exchange.turn();
            turns += 1;
            assert!(turns < TURNS_MAX, "no end: {}", exchange.describe());
        }
        exchange.check_end();
    });
    let is_seen = |state: &State| seen.contains(state);
    assert!(seen.len() < 2 || states.iter().all(is_seen), "{seen:?}");
}

#[test]
fn a_closed_window_opens_after_a_move_of_either_end() {
    for side in [Side::Left, Side::Right] {
        let mut exchange = Exchange::new(1, Weather::FAIR, [1_000_000, 0]);
        exchange.eagerness = 0;
        for _ in 0..300 {
            exchange.turn();
        }
        exchange.world.run_for(Duration::from_secs(2));
        let (host, socket) = exchange.host(Side::Left);
        let info = host.stack.info(socket).expect("a connection");
        assert!(info.unsent > 0 && info.in_flight == 0, "{info:?}");
        exchange.pass_on(side, Duration::from_millis(500));
        exchange.eagerness = 100;
        exchange.finish();
    }
}

#[test]
fn a_window_that_opens_while_its_sender_moves_is_asked_for_at_once() {
    let mut exchange = Exchange::new(1, Weather::FAIR, [1_000_000, 0]);
    exchange.eagerness = 0;
    for _ in 0..300 {
        exchange.turn();
    }
    exchange.world.run_for(Duration::from_secs(2));
    let snapshot = exchange.export(Side::Left).expect("a connection");
    exchange.eagerness = 100;
    exchange.advance(Side::Right);
    exchange.world.run_for(Duration::from_millis(5));
    exchange.import(Side::Left, &snapshot);
    let before = exchange.programs[1].received;
    for _ in 0..20 {
        exchange.advance(Side::Right);
        exchange.world.run_for(Duration::from_millis(1));
    }
    assert!(exchange.programs[1].received > before);
    exchange.finish();
}

#[test]
fn a_window_that_never_opens_as_far_again_is_used_with_and_without_a_move() {
    for is_moved in [false, true] {
        let mut exchange = Exchange::new(1, Weather::FAIR, [600_000, 0]);
        exchange.eagerness = 0;
        let (host, socket) = exchange.host(Side::Right);
        host.stack
            .configure(&mut host.env, socket, |options| {
                (options.recv_buffer, options.is_recv_tuned) = (1200, false);
            })
            .expect("our socket");
        for _ in 0..300 {
            exchange.turn();
        }
        if is_moved {
            exchange.pass_on(Side::Left, Duration::from_millis(500));
        }
        exchange.eagerness = 100;
        let began = exchange.world.now;
        exchange.finish();
        let took = exchange.world.now.since(began);
        // Beside the wait at the end. A timeout for each window would be minutes.
        assert!(took < Duration::from_secs(70), "{took:?}");
    }
}

#[test]
fn what_was_lost_before_a_move_is_sent_again_after_it() {
    let mut exchange = Exchange::new(1, Weather::FAIR, [50_000, 0]);
    let silence = Weather {
        loss: 100,
        ..Weather::FAIR
    };
    exchange.world.change_weather(silence);
    exchange.advance(Side::Left);
    // Twice the first timeout, so that the timer has backed off.
    exchange.world.run_for(Duration::from_millis(700));
    assert!(exchange.count(Side::Left, Count::Timeouts) > 0);
    exchange.pass_on(Side::Left, Duration::from_millis(100));
    exchange.world.change_weather(Weather::FAIR);
    exchange.finish();
}

#[test]
fn an_acknowledgement_that_is_owed_comes_from_the_new_stack() {
    let mut exchange = Exchange::new(1, Weather::FAIR, [0, 1]);
    exchange.programs[0].is_shut = true;
    let (host, socket) = exchange.host(Side::Right);
    let mut fill = |space: &mut [u8]| space.len();
    let sent = host.stack.send_with(&mut host.env, socket, 1, &mut fill);
    assert_eq!(sent, Ok(1));
    exchange.world.run_for(Duration::from_millis(1));
    let snapshot = exchange.export(Side::Left).expect("a connection");
    assert_eq!(snapshot.receiving.unread.len(), 1);
    exchange.world.run_for(Duration::from_millis(10));
    exchange.import(Side::Left, &snapshot);
    exchange.world.run_for(Duration::from_millis(10));
    let (host, socket) = exchange.host(Side::Right);
    assert_eq!(host.stack.unsent(socket), Ok(0));
    assert_eq!(exchange.count(Side::Right, Count::Timeouts), 0);
}

#[test]
fn a_snapshot_is_the_same_after_a_move() {
    let mut exchange = Exchange::new(3, Weather::FAIR, [100_000, 30_000]);
    for _ in 0..40 {
        exchange.turn();
    }
    let snapshot = exchange.export(Side::Left).expect("a connection");
    exchange.import(Side::Left, &snapshot);
    let again = exchange.export(Side::Left).expect("a connection");
    let mut expected = snapshot.try_clone().expect("memory");
    // What could leave has left.
    let sent = again.sending.unacked.len() - snapshot.sending.unacked.len();
    let moved: Vec<u8> = expected.sending.unsent.drain(..sent).collect();
    expected.sending.unacked.extend(moved);
    assert_eq!(again.sending, expected.sending);
    assert_eq!(again.receiving.unread, expected.receiving.unread);
    assert_eq!(again.receiving.nxt, expected.receiving.nxt);
    assert!(again.receiving.window >= expected.receiving.window);
    assert_eq!(again.clocks, expected.clocks);
    assert_eq!(again.rtt_micros, expected.rtt_micros);
    exchange.import(Side::Left, &again);
    exchange.finish();
}

#[test]
fn a_name_is_taken_once_and_must_be_ours() {
    let mut exchange = Exchange::new(1, Weather::FAIR, [0, 0]);
    let snapshot = exchange.export(Side::Left).expect("a connection");
    exchange.import(Side::Left, &snapshot);
    let host = exchange.world.host(Side::Left);
    let second = host.stack.open(Transport::Tcp).expect("a socket");
    let mut import = |snapshot: &TcpSnapshot| {
        let imported = host.stack.import(&mut host.env, second, snapshot);
        assert_eq!(host.stack.state(second), Ok(State::Closed));
        imported
    };
    assert_eq!(import(&snapshot), Err(Error::AddressInUse));
    let mut foreign = snapshot.try_clone().expect("memory");
    foreign.local.addr = Host::address(9).into();
    assert_eq!(import(&foreign), Err(Error::AddressNotAvailable));
    let mut nobody = snapshot.try_clone().expect("memory");
    nobody.remote.addr = std::net::Ipv4Addr::BROADCAST.into();
    assert_eq!(import(&nobody), Err(Error::AddressNotAvailable));
    let mut over = snapshot.try_clone().expect("memory");
    over.state = State::TimeWait;
    assert_eq!(import(&over), Err(Error::InvalidState));
    host.stack.close(&mut host.env, second).expect("our socket");
    exchange.finish();
}

#[test]
fn a_name_that_has_left_answers_to_nobody_but_a_new_connection() {
    let mut exchange = Exchange::new(1, Weather::FAIR, [0, 10_000]);
    exchange.export(Side::Left).expect("a connection");
    exchange.advance(Side::Right);
    exchange.world.run_for(Duration::from_secs(1));
    assert_eq!(exchange.count(Side::Left, Count::ResetsOut), 0);
    let drops = &exchange.world.left.stack.stats().drops;
    assert!(drops.get(DropReason::Departed) > 0);
    exchange.world.run_for(Duration::from_secs(120));
    assert!(exchange.count(Side::Left, Count::ResetsOut) > 0);
}

/// Something that a program might make up.
fn distort(random: &mut Random, snapshot: &TcpSnapshot) -> TcpSnapshot {
    let mut bad = snapshot.try_clone().expect("memory");
    for _ in 0..1 + random.below(6) {
        let word = match random.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => random.bits() as u32,
        };
        let states = [State::Established, State::FinWait1, State::FinWait2];
        let others = [
            State::CloseWait,
            State::Closing,
            State::LastAck,
            State::Listen,
        ];
        let (sending, receiving) = (&mut bad.sending, &mut bad.receiving);
        match random.below(20) {
            0 => sending.una = word,
            1 => sending.window = word,
            2 => sending.window_max = word,
            3 => sending.wl1 = word,
            4 => sending.scale = word as u8 % 16,
            5 => sending.mss = word as u16,
            6 => sending.is_fin_sent = true,
            7 => sending.unacked = bytes(random, word as usize % 300_000),
            8 => sending.unsent = bytes(random, word as usize % 300_000),
            9 => receiving.nxt = word,
            10 => receiving.window = word,
            11 => receiving.scale = word as u8 % 16,
            12 => receiving.unread = bytes(random, word as usize % 300_000),
            13 => bad.state = states[word as usize % 3],
            14 => bad.state = others[word as usize % 4],
            15 => bad.rtt_micros = (word, random.bits() as u32),
            16 => bad.clocks = None,
            17 => bad.options.send_buffer = word,
            18 => bad.options.recv_buffer = word,
            _ => (bad.has_sack, bad.has_ecn) = (word % 2 == 0, true),
        }
    }
    bad
}

#[test]
fn whatever_a_snapshot_says_is_refused_or_ends_by_itself() {
    for_each_seed(300, |seed| {
        let mut exchange = Exchange::new(seed, Weather::FAIR, [20_000, 20_000]);
        for _ in 0..10 {
            exchange.turn();
        }
        let mut random = Random::new(seed);
        let snapshot = exchange.export(Side::Left).expect("a connection");
        let bad = distort(&mut random, &snapshot);
        let host = exchange.world.host(Side::Left);
        let socket = host.stack.open(Transport::Tcp).expect("a socket");
        let imported = host.stack.import(&mut host.env, socket, &bad);
        for _ in 0..10 {
            exchange.world.run_for(Duration::from_millis(300));
            let host = exchange.world.host(Side::Left);
            let mut take = |bytes: &[u8]| bytes.len();
            let mut fill = |space: &mut [u8]| space.len();
            host.stack
                .recv_with(&mut host.env, socket, 10_000, &mut take)
                .ok();
            host.stack
                .send_with(&mut host.env, socket, 1000, &mut fill)
                .ok();
        }
        let host = exchange.world.host(Side::Left);
        if imported.is_err() {
            assert_eq!(host.stack.state(socket), Ok(State::Closed));
        }
        host.stack.close(&mut host.env, socket).expect("our socket");
        // A peer that reads nothing and lives on would hold it for ever.
        let (peer, socket) = exchange.host(Side::Right);
        peer.stack.abort(&mut peer.env, socket).expect("its socket");
        exchange.world.run_for(Duration::from_secs(2000));
        assert_eq!(exchange.world.left.stack.sockets_used(), 0);
        assert_eq!(exchange.world.left.stack.tcp_memory(), 0);
    });
}

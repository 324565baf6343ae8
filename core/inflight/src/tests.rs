use super::*;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A world in which the truth is known: who holds what, and what lies where.
#[derive(Default)]
struct World {
    graph: Graph,
    /// Descriptors of programs, by socket.
    held: BTreeMap<SocketId, usize>,
    /// (queue, socket) for each message.
    messages: Vec<(SocketId, SocketId)>,
    /// Connections that wait, with who listens.
    waiting: BTreeMap<SocketId, SocketId>,
}

impl World {
    fn send(&mut self, queue: SocketId, socket: SocketId) {
        self.graph.take_up(socket);
        self.graph.put(queue, socket);
        self.messages.push((queue, socket));
    }

    fn hold(&mut self, socket: SocketId) {
        *self.held.entry(socket).or_default() += 1;
    }

    fn close(&mut self, socket: SocketId) {
        self.held.remove(&socket);
    }

    fn standing(&self, socket: SocketId) -> Standing {
        if let Some(&listener) = self.waiting.get(&socket) {
            return Standing::Waiting(listener);
        }
        let carried = self.messages.iter().filter(|(_, it)| *it == socket).count();
        Standing::Referred(carried + self.held.get(&socket).copied().unwrap_or(0))
    }

    fn search(&self, budget: usize) -> Progress {
        let mut search = Search::new(&self.graph);
        loop {
            match search.step(&self.graph, budget, |socket| self.standing(socket)) {
                Progress::More => {}
                end => return end,
            }
        }
    }

    fn garbage(&self) -> Vec<SocketId> {
        match self.search(3) {
            Progress::Done(garbage) => garbage,
            other => panic!("{other:?}"),
        }
    }

    /// What cannot be received, found by trying until nothing more comes.
    fn oracle(&self) -> Vec<SocketId> {
        let mut reached: BTreeSet<SocketId> = self.held.keys().copied().collect();
        loop {
            let before = reached.len();
            for &(queue, socket) in &self.messages {
                if reached.contains(&queue) {
                    reached.insert(socket);
                }
            }
            for (&connection, listener) in &self.waiting {
                if reached.contains(listener) {
                    reached.insert(connection);
                }
            }
            if reached.len() == before {
                break;
            }
        }
        let all: BTreeSet<SocketId> = self
            .messages
            .iter()
            .flat_map(|&(queue, socket)| [queue, socket])
            .collect();
        all.difference(&reached).copied().collect()
    }
}

#[test]
fn a_socket_in_its_own_queue_is_garbage_once_it_is_closed() {
    let mut world = World::default();
    world.hold(1);
    world.send(1, 1);
    assert_eq!(world.garbage(), []);
    world.close(1);
    assert_eq!(world.garbage(), [1]);
}

#[test]
fn two_that_lie_in_each_others_queue_are_garbage_together() {
    let mut world = World::default();
    world.hold(1);
    world.send(1, 2);
    world.send(2, 1);
    assert_eq!(world.garbage(), []);
    world.close(1);
    assert_eq!(world.garbage(), [1, 2]);
}

#[test]
fn what_can_be_received_in_two_steps_is_no_garbage() {
    let mut world = World::default();
    world.hold(1);
    world.send(1, 2);
    world.send(2, 3);
    world.send(3, 2);
    world.send(4, 4);
    assert_eq!(world.garbage(), [4]);
}

#[test]
fn what_waits_to_be_accepted_is_as_lost_as_who_listens() {
    let mut world = World::default();
    world.waiting.insert(2, 1);
    world.hold(1);
    world.send(2, 1);
    assert_eq!(world.garbage(), []);
    world.close(1);
    assert_eq!(world.garbage(), [1, 2]);
}

#[test]
fn a_message_in_somebodys_hands_keeps_what_it_carries() {
    let mut graph = Graph::new();
    graph.take_up(1);
    let standing = |_| Standing::Referred(2);
    let mut search = Search::new(&graph);
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = search.step(&graph, 1, standing);
    }
    assert_eq!(progress, Progress::Done(Vec::new()));
}

#[test]
fn a_change_makes_a_search_void() {
    let mut world = World::default();
    world.send(1, 1);
    let mut search = Search::new(&world.graph);
    let standing = |_| Standing::Referred(1);
    assert_eq!(search.step(&world.graph, 1, standing), Progress::More);
    world.graph.note_peek();
    assert_eq!(search.step(&world.graph, 1, standing), Progress::Void);
}

#[test]
fn nothing_is_kept_of_messages_that_were_received() {
    let mut graph = Graph::new();
    for _ in 0..2 {
        graph.take_up(7);
        graph.put(8, 7);
    }
    for _ in 0..2 {
        graph.pull(8, 7);
        graph.lay_down(7);
    }
    assert!(graph.is_empty());
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn in_random_graphs_exactly_what_cannot_be_received_is_garbage() {
    for seed in 1..=3000_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut world = World::default();
        let sockets = 2 + next(&mut state) % 12;
        for socket in 0..sockets {
            match next(&mut state) % 6 {
                0 => world.hold(socket),
                1 => drop(world.waiting.insert(100 + socket, socket)),
                _ => {}
            }
        }
        for _ in 0..next(&mut state) % 24 {
            let mut queue = next(&mut state) % sockets;
            if world.waiting.contains_key(&(100 + queue)) && next(&mut state).is_multiple_of(2) {
                queue += 100;
            }
            let socket = next(&mut state) % sockets;
            world.send(queue, socket);
        }
        // Who listens and is in no message is held, or there would be no listener.
        for listener in world.waiting.values().copied().collect::<Vec<_>>() {
            if !world.graph.vertices.contains_key(&listener) {
                world.hold(listener);
            }
        }
        let budget = 1 + (next(&mut state) % 9) as usize;
        let expected = Progress::Done(world.oracle());
        assert_eq!(world.search(budget), expected, "replay with SEED={seed}");
    }
}

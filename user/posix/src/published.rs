//! What a program shows of its sockets to tools of the machine (`inet::stack_table`).

use std::fmt::Write;

use base::SharedMemory;
use inet::stack_table::{Payload, StackRow, StackTable};
use inet::{ConnectionEntry, SocketEntry, Stack, Transport};

use crate::host::{Host, Link};

/// What is counted: a group, a name in it, and how often.
pub type Counter = (&'static str, (&'static str, u64));

/// What is written.
#[derive(Default)]
pub struct Shown {
    rows: Vec<Option<Payload>>,
    counters: Vec<Counter>,
}

impl Shown {
    /// Room for `most` rows of another host.
    fn room(&self, most: usize) -> usize {
        most.saturating_sub(self.rows.len())
    }

    /// The same counters count for all hosts.
    fn count(&mut self, (group, (name, value)): Counter) {
        let is_it = |known: &&mut Counter| (known.0, known.1.0) == (group, name);
        match self.counters.iter_mut().find(is_it) {
            Some(known) => known.1.1 += value,
            None => self.counters.push((group, (name, value))),
        }
    }

    /// Writes it.
    pub fn write<M: SharedMemory>(self, table: &StackTable<M>) {
        table.write_rows(self.rows.into_iter());
        let mut text = String::new();
        for (group, (name, value)) in &self.counters {
            // Nothing refuses to be written to a string.
            writeln!(text, "{group} {name} {value}").ok();
        }
        table.write_text(&text);
    }
}

impl<L: Link> Host<L> {
    /// Adds all sockets and counters of now to what is shown in `most` rows, with `others` that the stack does not know. Sockets
    /// have rows by their slots in the stack, those in TIME_WAIT what is left.
    pub fn show(&mut self, shown: &mut Shown, most: usize, others: &[Counter]) {
        let rows = self.rows(shown.room(most));
        shown.rows.extend(rows);
        for counter in self.counters(others) {
            shown.count(counter);
        }
    }

    fn rows(&mut self, most: usize) -> Vec<Option<Payload>> {
        let mut numbers = Vec::new();
        for (number, open) in self.table.sockets() {
            let slot = open.id().index();
            if numbers.len() <= slot {
                numbers.resize(slot + 1, None);
            }
            // A socket is shown under its lowest number.
            numbers[slot].get_or_insert(number);
        }
        let (stack, _) = self.parts();
        let slots = stack.slots().min(most);
        let mut rows = vec![None; slots];
        for (slot, socket) in stack.sockets_in(0..slots) {
            let number = numbers.get(slot).copied().flatten();
            rows[slot] = StackRow { number, socket }.encode();
        }
        add_waiting(stack, most, &mut rows);
        rows
    }

    fn counters(&mut self, others: &[Counter]) -> Vec<Counter> {
        let turns = self.turns();
        let (stack, _) = self.parts();
        let stats = stack.stats();
        let sockets = [
            ("open", stack.sockets_used() as u64),
            ("time_wait", stack.time_waits() as u64),
            ("orphans", stack.orphans() as u64),
        ];
        let all = stats.counts.iter().map(|one| ("stack", one));
        let all = all.chain(stats.drops.iter().map(|one| ("drop", one)));
        let all = all.chain(stats.resets.iter().map(|one| ("reset", one)));
        let all = all.chain(sockets.map(|one| ("sockets", one)));
        let all = all.chain(others.iter().copied());
        all.chain([("library", ("turns", turns))]).collect()
    }
}

/// Adds connections in TIME_WAIT where there is room.
fn add_waiting(stack: &Stack, most: usize, rows: &mut Vec<Option<Payload>>) {
    let mut waiting = stack
        .time_waits_from(0)
        .filter_map(|entry| of_waiting(entry).encode());
    for row in rows.iter_mut().filter(|row| row.is_none()) {
        *row = waiting.next();
    }
    let left = most - rows.len();
    rows.extend(waiting.take(left).map(Some));
}

fn of_waiting(connection: ConnectionEntry) -> StackRow {
    StackRow {
        number: None,
        socket: SocketEntry {
            transport: Transport::Tcp,
            connection,
            info: None,
            buffers: [0; 2],
        },
    }
}

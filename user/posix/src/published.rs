//! What a program shows of its sockets to tools of the machine (`inet::stack_table`).

use std::fmt::Write;

use base::SharedMemory;
use inet::stack_table::{Payload, StackRow, StackTable};
use inet::{ConnectionEntry, SocketEntry, Stack, Transport};

use crate::host::{Host, Link};

/// What is counted: a group, a name in it, and how often.
pub type Counter = (&'static str, (&'static str, u64));

impl<L: Link> Host<L> {
    /// Writes all sockets and counters of now into `table`, with `others` that the stack does not know. Sockets have rows by
    /// their slots in the stack, those in TIME_WAIT what is left.
    pub fn publish<M: SharedMemory>(&mut self, table: &StackTable<M>, others: &[Counter]) {
        let rows = self.rows(table.rows());
        table.write_rows(rows.into_iter());
        table.write_text(&self.counters(others));
    }

    fn rows(&mut self, most: usize) -> Vec<Option<Payload>> {
        let mut numbers = Vec::new();
        for (number, open) in self.table.sockets() {
            let slot = open.id.index();
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

    /// Lines of `group name value`.
    fn counters(&mut self, others: &[Counter]) -> String {
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
        let mut text = String::new();
        for (group, (name, value)) in all.chain([("library", ("turns", turns))]) {
            // Nothing refuses to be written to a string.
            writeln!(text, "{group} {name} {value}").ok();
        }
        text
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

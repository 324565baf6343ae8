//! Netlink's messages beside what Debian's `ip` and `ss` send and read.

mod answers;
mod commands;
mod dumps;
mod filters;
mod hostile;
mod tools;
mod unix;

use netlink::{Message, Messages, Request};

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// What the fixture has behind `mark` for a command; `tests/fixtures/make.py` made it.
fn recorded(command: &str, mark: &str) -> Vec<Vec<u8>> {
    let text = include_str!("../fixtures/iproute2.txt");
    let lines = text
        .split("$ ")
        .find_map(|one| one.strip_prefix(command)?.strip_prefix('\n'));
    let lines = lines.expect(command).lines();
    lines
        .filter_map(|line| line.strip_prefix(mark))
        .map(|hex| bytes(hex.trim()))
        .collect()
}

/// All datagrams of the fixture.
fn all() -> Vec<Vec<u8>> {
    let text = include_str!("../fixtures/iproute2.txt");
    let hex = text
        .lines()
        .filter_map(|line| line.strip_prefix(['>', '<']));
    hex.map(|hex| bytes(hex.trim())).collect()
}

fn first(datagram: &[u8]) -> Message<'_> {
    Messages::new(datagram).next().expect("a message")
}

fn parse(datagram: &[u8]) -> Request<'_> {
    Request::parse(&first(datagram)).expect("a command")
}

//! C programs with a network of their own, by the installed `libsietch-io` (`docs/libos.md`).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::{Setup, write_file};
use crate::links::operator_with;
use crate::native_io;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a C program with a network of its own echoes datagrams",
        echoes,
    ),
    (
        "a C program with a network of its own serves the streams of many clients",
        serves,
    ),
    (
        "names that a C program must not use any more are refused",
        refuses,
    ),
];

const PROGRAM: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const ECHO: u16 = 7;
const HTTP: u16 = 80;
const LENGTHS: [usize; 6] = [0, 1, 18, 777, 1471, 1472];
/// Datagrams under way at once.
const WINDOW: usize = 32;

/// A machine with a VNIC, and these programs in `/bin`.
fn operator(setup: &Setup, programs: &[PathBuf], more: &[&str]) -> Result<Operator, String> {
    let add = |program: &PathBuf| {
        let name = program.file_name().unwrap_or_default().display();
        format!("{}:/bin/{name}", program.display())
    };
    let added: Vec<String> = programs.iter().map(add).collect();
    let flags = added.iter().flat_map(|added| ["--add", added.as_str()]);
    let flags: Vec<&str> = flags.chain(more.iter().copied()).collect();
    let mut shell = operator_with(setup, &flags)?;
    shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61")?;
    Ok(shell)
}

fn starts(shell: &mut Operator, command: &str) -> Result<(), String> {
    let said = shell.ask(&format!(
        "rm -f /tmp/said; {command} >/tmp/said 2>&1 & \
         until grep -q . /tmp/said; do sleep 0.1; done; cat /tmp/said"
    ))?;
    match said.contains("\nserving") {
        true => Ok(()),
        false => Err(format!("the program does not start: {said}")),
    }
}

fn echoes(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::installed_example("udp_echo")?;
    let mut shell = operator(setup, &[program], &[])?;
    starts(&mut shell, &format!("udp_echo vnic61 {PROGRAM}/24"))?;
    let socket: UdpSocket = native_io::client_of(ECHO)?;
    for len in LENGTHS {
        native_io::exchange(&socket, len, 1)?;
    }
    native_io::exchange(&socket, 1000, WINDOW)?;
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

/// Clients at once, and what each asks for.
const CLIENTS: usize = 32;
const REQUESTS: usize = 3;
/// More than a window takes, so that an answer needs several turns.
const DOCUMENT_BYTES: usize = 150_000;

fn serves(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let document: Vec<u8> = (0..DOCUMENT_BYTES).map(|at| (at / 7) as u8).collect();
    let file = write_file("document", &document)?;
    let program = build::installed_example("http")?;
    let mut shell = operator(setup, &[program], &["--add", &format!("{file}:/document")])?;
    starts(&mut shell, &format!("http vnic61 {PROGRAM}/24 /document"))?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {DOCUMENT_BYTES}\r\n\r\n");
    let answer = [head.as_bytes(), &document].concat();
    for _ in 0..2 {
        let clients = (0..CLIENTS).map(|_| client());
        let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
        clients.iter_mut().try_for_each(ask)?;
        clients
            .iter_mut()
            .try_for_each(|client| is_answered(client, &answer))?;
    }
    shell.ask("kill $!; wait $!")?;
    shell.leave().map(drop)
}

fn client() -> Result<TcpStream, String> {
    let client = TcpStream::connect((PROGRAM, HTTP)).and_then(|client| {
        client.set_read_timeout(Some(Duration::from_secs(20)))?;
        client.set_nodelay(true)?;
        Ok(client)
    });
    client.map_err(|error| error.to_string())
}

/// Several requests, whose pieces end anywhere.
fn ask(client: &mut TcpStream) -> Result<(), String> {
    let requests = "GET / HTTP/1.1\r\nHost: sietch\r\n\r\n".repeat(REQUESTS);
    let mut pieces = requests.as_bytes().chunks(31);
    let asked = pieces.try_for_each(|piece| client.write_all(piece));
    asked.map_err(|error| error.to_string())
}

/// By as many answers, and then by the stream's end, after ours.
fn is_answered(client: &mut TcpStream, answer: &[u8]) -> Result<(), String> {
    let mut said = vec![0; answer.len()];
    for number in 0..REQUESTS {
        let read = client.read_exact(&mut said);
        read.map_err(|error| format!("no answer {number}: {error}"))?;
        if said != answer {
            return Err(format!("answer {number} is wrong"));
        }
    }
    let end = client
        .shutdown(std::net::Shutdown::Write)
        .and_then(|()| client.read(&mut said));
    match end {
        Ok(0) => Ok(()),
        other => Err(format!("the stream does not end: {other:?}")),
    }
}

fn refuses(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let source = "user/sietch-c/tests/programs/names.c";
    let program = build::with_installed(source.as_ref())?;
    let mut shell = operator(setup, &[program], &[])?;
    let said = shell.ask(&format!("names vnic61 {PROGRAM}/24; echo status $?"))?;
    if !said.contains("\nfine") || !said.contains("status 0") {
        return Err(format!("it says {said}"));
    }
    shell.leave().map(drop)
}

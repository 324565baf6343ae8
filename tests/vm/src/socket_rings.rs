//! Programs that use io_uring, with `libsietch.so` in front (`docs/bypass.md`).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, operator_of, start};
use crate::guest::Setup;

/// The tests of this module.
pub const TESTS: &[Test] = &[
    (
        "an echo by liburing and libsietch.so answers datagrams and streams from one ring",
        echoes,
    ),
    (
        "an echo by one receive of many shots and libsietch.so answers from lent buffers",
        echoes_of_many_shots,
    ),
    (
        "fio by libsietch.so has the kernel's ring for its files",
        leaves_files_alone,
    ),
];

const ECHO: u16 = 7;
const PATIENCE: Duration = Duration::from_secs(30);

fn echoes(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("tests/programs/scenes/uring_echo.c"))?;
    let program = format!("{}:/bin/uring_echo", program.display());
    let mut shell = operator_of(setup, "256M", &[&program])?;
    start(&mut shell, "uring_echo", "serving")?;
    let done = datagrams(PROGRAM).and_then(|()| streams(PROGRAM));
    done.map_err(|error| shell.guest.explain(&error.to_string()))?;
    let said = shell.ask("cat /tmp/said; kill $!; wait $!")?;
    if said.contains("libsietch:") {
        return Err(said);
    }
    shell.leave().map(drop)
}

/// The server whose instructions `bench-echo --own` counts.
fn echoes_of_many_shots(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let program = build::c(Path::new("benches/pair/servers/uring_udp_echo.c"))?;
    let program = format!("{}:/bin/uring_udp_echo", program.display());
    let mut shell = operator_of(setup, "256M", &[&program])?;
    start(&mut shell, "uring_udp_echo", "serving")?;
    let done = datagrams(PROGRAM);
    done.map_err(|error| shell.guest.explain(&error.to_string()))?;
    let said = shell.ask("cat /tmp/said; kill $!; wait $!")?;
    if said.contains("libsietch:") {
        return Err(said);
    }
    shell.leave().map(drop)
}

/// Bursts of datagrams, each of which comes back as it was.
pub fn datagrams(address: Ipv4Addr) -> std::io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((address, ECHO))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    for round in 0..10_u8 {
        let sent: Vec<Vec<u8>> = (0..40)
            .map(|one| vec![one ^ round; 64 + usize::from(one)])
            .collect();
        for datagram in &sent {
            socket.send(datagram)?;
        }
        let mut missing = sent;
        while !missing.is_empty() {
            let mut bytes = [0; 2048];
            let len = socket.recv(&mut bytes)?;
            let at = missing
                .iter()
                .position(|one| Some(one.as_slice()) == bytes.get(..len));
            missing.swap_remove(at.ok_or(std::io::ErrorKind::InvalidData)?);
        }
    }
    Ok(())
}

/// Connections side by side, each with more than fits into a window, written and read at once.
pub fn streams(address: Ipv4Addr) -> std::io::Result<()> {
    let clients: Vec<_> = (0..8)
        .map(|client| thread::spawn(move || stream(address, client)))
        .collect();
    for client in clients {
        client.join().map_err(|_| std::io::ErrorKind::Other)??;
    }
    Ok(())
}

fn stream(address: Ipv4Addr, client: u8) -> std::io::Result<()> {
    const BYTES: usize = 300_000;
    let mut stream = TcpStream::connect((address, ECHO))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let sent: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8 ^ client).collect();
    let mut writing = stream.try_clone()?;
    let bytes = sent.clone();
    let writer = thread::spawn(move || {
        writing.write_all(&bytes)?;
        writing.shutdown(std::net::Shutdown::Write)
    });
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard)?;
    writer.join().map_err(|_| std::io::ErrorKind::Other)??;
    match heard == sent {
        true => Ok(()),
        false => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

fn leaves_files_alone(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator_of(setup, "512M", &["/usr/bin/fio"])?;
    let said = shell.ask(&format!(
        "{} fio --name=x --filename=/tmp/x --size=4M --ioengine=io_uring --iodepth=8 --rw=randrw \
         --bs=4k --fixedbufs --registerfiles --verify=crc32c --output-format=terse --minimal | cut -d';' -f3,5",
        crate::bypass::VARIABLES
    ))?;
    if !said.contains("x;0") || said.contains("libsietch:") {
        return Err(said);
    }
    shell.leave().map(drop)
}

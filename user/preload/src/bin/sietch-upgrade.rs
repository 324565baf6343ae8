//! `sietch-upgrade PID LIBRARY`: has a program under `libsietch.so` go on with another version of it
//! (`docs/bypass.md`, "Exchanged while it serves").
#![forbid(unsafe_code)]

use std::env;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [pid, library] = arguments.as_slice() else {
        eprintln!("Usage: sietch-upgrade PID LIBRARY");
        return ExitCode::from(2);
    };
    let answer = ask(pid, library).unwrap_or_else(|error| format!("no: process {pid}: {error}"));
    let answer = answer.trim_end();
    match answer.strip_prefix("ok: ") {
        Some(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        None => {
            let why = answer.strip_prefix("no: ").unwrap_or("it has ended");
            eprintln!("sietch-upgrade: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The program's own sentence. It finds the library by the same path.
fn ask(pid: &str, library: &str) -> io::Result<String> {
    let library = path::absolute(library)?;
    let name = SocketAddr::from_abstract_name(format!("sietch-{pid}"))?;
    let mut program = UnixStream::connect_addr(&name)?;
    program.write_all(library.as_os_str().as_encoded_bytes())?;
    program.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    program.read_to_string(&mut answer)?;
    Ok(answer)
}

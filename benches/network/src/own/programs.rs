//! Servers as Debian has them, and their configurations.

use std::fs;

use bench_pair::OUTPUT;

use super::network::Program;

/// Redis that saves nothing.
pub fn redis() -> Program {
    let args = ["--protected-mode", "no", "--save", ""];
    program("/usr/bin/redis-server", &args)
}

/// memcached with so many threads. Who is nobody has neither VNICs nor functions.
pub fn memcached(threads: u8) -> Program {
    let threads = threads.to_string();
    let args = ["-u", "root", "-l", "0.0.0.0", "-t", &threads];
    program("/usr/bin/memcached", &args)
}

/// nginx with a file of 1 KiB: so many workers and their master, or one process.
pub fn nginx(workers: Option<u8>) -> Result<Program, String> {
    let mut program = program("/usr/sbin/nginx", &["-c", "/nginx.conf"]);
    program.files = site(workers).map_err(|error| format!("{OUTPUT}: {error}"))?;
    Ok(program)
}

fn program(path: &str, args: &[&str]) -> Program {
    Program {
        path: path.into(),
        args: args.iter().map(ToString::to_string).collect(),
        files: vec![],
    }
}

/// Site and configuration, as `--add` takes them.
fn site(workers: Option<u8>) -> std::io::Result<Vec<String>> {
    let (folder, file) = (
        format!("{OUTPUT}/own-site"),
        format!("{OUTPUT}/own-nginx.conf"),
    );
    let processes = match workers {
        Some(workers) => format!("worker_processes {workers}"),
        None => "master_process off".into(),
    };
    let configuration = format!(
        "daemon off;\n{processes};\nuser root;\nerror_log stderr;\npid /run/nginx.pid;\n\
        events {{ worker_connections 512; }}\n\
        http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
        server {{ listen 80; root /site; }} }}\n"
    );
    fs::create_dir_all(&folder)?;
    fs::write(format!("{folder}/index.html"), "s".repeat(1024))?;
    fs::write(&file, configuration)?;
    Ok(vec![
        format!("{folder}:/site"),
        format!("{file}:/nginx.conf"),
    ])
}

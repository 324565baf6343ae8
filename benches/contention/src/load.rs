//! What runs in the machines: the shell's lines, and the files that they need.

use std::fs;
use std::process::Command;

/// Where built programs and the machine's files go.
pub const OUTPUT: &str = "build/bench-contention";

/// Lines for the shell, one machine each; the server has as many workers as there are `CPUS`, and
/// `STARTUP` seconds to begin.
pub const SCRIPTS: [&str; 4] = [
    "loads all",
    "redis-server --save '' --logfile /dev/null --bind 127.0.0.1 & sleep $STARTUP; \
     loads around redis 8000 redis-benchmark -h 127.0.0.1 -c 16 --threads 4 -n 8000 -t get",
    "memcached -u root -l 127.0.0.1 -t $CPUS & sleep $STARTUP; \
     loads around memcached 8000 loads get 11211 16 500",
    "nginx -c /nginx.conf & sleep $STARTUP; \
     loads around nginx 4000 ab -k -q -c 16 -n 4000 http://127.0.0.1/file",
];

const SERVED_BYTES: usize = 1024;

/// What the image has besides the shell, as `--add` takes it.
pub fn files(cpus: u8) -> Result<Vec<String>, String> {
    fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let configuration = format!(
        "daemon off; worker_processes {cpus}; error_log /dev/null; events {{}}\n\
         http {{ access_log off; server {{ listen 80; root /site; }} }}\n"
    );
    let write = |name: &str, text: &[u8]| {
        let path = format!("{OUTPUT}/{name}");
        fs::write(&path, text).map_err(|error| format!("{path}: {error}"))?;
        Ok::<String, String>(path)
    };
    let mut files = vec![
        format!(
            "{}:/nginx.conf",
            write("nginx.conf", configuration.as_bytes())?
        ),
        format!("{}:/site/file", write("file", &[b'.'; SERVED_BYTES])?),
        format!("{}:/bin/loads", compile()?),
        "/bin/busybox:/bin/sh".into(),
        "/bin/busybox:/bin/sleep".into(),
    ];
    let programs = [
        "/usr/bin/redis-server",
        "/usr/bin/redis-benchmark",
        "/usr/bin/memcached",
        "/usr/sbin/nginx",
        "/usr/bin/ab",
    ];
    files.extend(programs.map(|path| format!("{path}:{path}")));
    Ok(files)
}

fn compile() -> Result<String, String> {
    let program = format!("{OUTPUT}/loads");
    let built = Command::new("cc")
        .args(["-static", "-O2", "-Wall", "-pthread", "-o", &program])
        .arg("benches/contention/programs/loads.c")
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(program),
        false => Err("loads cannot be compiled: `make setup` installs the compiler.".into()),
    }
}

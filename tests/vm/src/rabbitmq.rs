//! RabbitMQ on Erlang/OTP as a user of its own, on a folder of the host.
//!
//! Erlang looks for each of a thousand modules in a hundred folders. Over a volume each
//! look is a message to the host and back, so the modules lie in the machine's image.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::Test;
use crate::guest::Setup;
use crate::userland;

/// The tests.
pub const TESTS: &[Test] = &[(
    "RabbitMQ keeps persistent messages of many connections and hands them on",
    messages,
)];

/// The server compiles its modules to machine code when it loads them, and hosts are busy.
const PATIENCE: Duration = Duration::from_secs(480);
/// Two schedulers, and no plugins. Its user `guest` may come from outside of the machine.
const SCRIPT: &str = "\
set -e
mkdir -p /data/home
printf 'loopback_users = none\\n' > /data/rabbitmq.conf
touch /data/plugins
chown -R 65534:65534 /data/home
export PATH=/usr/lib/erlang/bin:$PATH HOME=/data/home RABBITMQ_NODENAME=rabbit@localhost
export RABBITMQ_LOGS=- RABBITMQ_LOG_BASE=/data/home/log
export RABBITMQ_CONFIG_FILE=/data/rabbitmq.conf RABBITMQ_MNESIA_BASE=/data/home/mnesia
export RABBITMQ_ENABLED_PLUGINS_FILE=/data/plugins
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 2:2 +A 4 +SDio 2'
exec setpriv --reuid=65534 --regid=65534 --clear-groups /usr/lib/rabbitmq/bin/rabbitmq-server
";
/// The modules, what the scripts of both call, and what Erlang opens by name.
const ADDED: &[&str] = &[
    "/usr/lib/erlang",
    "/usr/lib/rabbitmq",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/bin/setpriv",
    "/usr/bin/dirname",
    "/usr/bin/basename",
    "/usr/bin/readlink",
    "/usr/bin/date",
    "/bin/mkdir",
    "/bin/chown",
    "/bin/touch",
    "/etc/hosts",
];
/// Erlang's programs, which need their libraries in the image.
const RUNTIME: &[&str] = &[
    "beam.smp",
    "epmd",
    "erl_child_setup",
    "inet_gethost",
    "erlexec",
];
const CONNECTIONS: &str = "6";
const MESSAGES: &str = "500";

fn messages(setup: &Setup) -> Result<(), String> {
    let volume = userland::data("rabbitmq")?;
    let folder = runtime_folder()?;
    let runtime = RUNTIME.iter().map(|name| format!("{folder}/{name}"));
    let added: Vec<String> = ADDED
        .iter()
        .map(|path| path.to_string())
        .chain(runtime)
        .flat_map(|path| ["--add".into(), path])
        .collect();
    let added: Vec<&str> = added.iter().map(String::as_str).collect();
    let machine = ["--memory", "1G", "--volume", &volume];
    let args = [&machine, &added[..], &["/bin/sh", "-c", SCRIPT]].concat();
    let (guest, address) = setup.serve(5672, &args)?;
    guest.expect("Server startup complete", PATIENCE)?;
    load(address).map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}

/// Debian has a folder for each version of the runtime.
fn runtime_folder() -> Result<String, String> {
    let entries = fs::read_dir("/usr/lib/erlang").map_err(|error| error.to_string())?;
    let mut folders = entries
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|folder| folder.join("beam.smp").is_file());
    let found = folders.next().ok_or("Erlang's runtime is missing")?;
    Ok(found.display().to_string())
}

/// Publishes and consumes; an error is what the client says.
pub fn load(address: SocketAddr) -> Result<(), String> {
    let output = Command::new("/usr/bin/python3")
        .arg("tests/harness/amqp.py")
        .args([address.ip().to_string(), address.port().to_string()])
        .args([CONNECTIONS, MESSAGES])
        .output()
        .map_err(|error| format!("amqp.py: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "failed client: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

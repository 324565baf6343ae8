//! Programs in several languages, and what makes programs.

use std::path::{Path, PathBuf};

use super::{PROGRAM, Program, Ready, load};
use crate::clients::together;
use crate::http::HELLO;
use crate::{Test, build, tokio};

pub(super) const JAVA: Test = (
    "a server on OpenJDK runs as it is installed, and from an image",
    |setup| {
        Program {
            packages: &["openjdk-17-jre-headless"],
            built: Some(|| build::java(Path::new("tests/harness/Greeter.java"))),
            script: "exec java -cp /app Greeter",
            port: 8080,
            ready: Ready::Answers(HELLO),
            load: |address| load::http(address, "/", "hello from Java"),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const GO: Test = (
    "a server in Go runs beside the host's files, and in an image",
    |setup| {
        Program {
            built: Some(|| build::go(Path::new("tests/programs/http_server.go"))),
            script: "exec /app/http_server",
            port: 8080,
            ready: Ready::Answers(HELLO),
            load: |address| load::http(address, "/", "hello from Go"),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const RUST: Test = (
    "a server on Tokio runs beside the host's files, and in an image",
    |setup| {
        Program {
            built: Some(|| build::tool("tokio-server", "tokio-server")),
            script: "exec /app/tokio-server",
            port: 8080,
            ready: Ready::Answers(&[0, 0, 0, 1, b'!']),
            load: |address| together(4, |number| tokio::client(address, number)),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const ERLANG: Test = (
    "a server in Erlang runs as it is installed, and from an image",
    |setup| {
        Program {
            packages: &["erlang-base"],
            files: &[(
                "server.erl",
                "{ok, Listener} = gen_tcp:listen(8000, [{active, false}, binary, {packet, http}, {backlog, 100}]),
                Answer = fun(Socket) -> gen_tcp:recv(Socket, 0), inet:setopts(Socket, [{packet, raw}]),
                    gen_tcp:recv(Socket, 0), gen_tcp:send(Socket,
                    <<\"HTTP/1.1 200 OK\\r\\nContent-Length: 17\\r\\n\\r\\nhello from Erlang\">>), gen_tcp:close(Socket) end,
                Accept = fun Loop() -> {ok, Socket} = gen_tcp:accept(Listener),
                    gen_tcp:controlling_process(Socket, spawn(fun() -> Answer(Socket) end)), Loop() end, Accept().",
            )],
            script: "exec erl -noshell -eval \"$(cat /app/server.erl)\"",
            port: 8000,
            ready: Ready::Answers(HELLO),
            load: |address| load::http_fresh(address, "hello from Erlang"),
            last_words: "SIGTERM received - shutting down",
            ..PROGRAM
        }
        .run(setup)
    },
);

/// Sources of our own tests.
fn sources() -> Result<PathBuf, String> {
    Ok("tests/programs".into())
}

pub(super) const COMPILER: Test = (
    "gcc runs as it is installed, and from an image: four at once, and what they make runs",
    |setup| {
        Program {
            packages: &["gcc", "libc6-dev", "findutils"],
            built: Some(sources),
            script: "set -e; cd /tmp
                printf '%s\\n' blocked_sockets tcp_options socket_edges inet_options net_v6 socket_buffers raw_socket \
                    socket_filters > names
                xargs -P 4 -I NAME gcc -O2 -pthread -o NAME /app/NAME.c < names
                while read name; do test -x $name; done < names
                echo 'int main() { return 7; }' > seven.c; gcc -O2 -flto -o seven seven.c
                status=0; ./seven || status=$?; test $status = 7
                echo \"compiled $(wc -l < names) programs\"; exec sleep 1000",
            port: 8000,
            ready: Ready::Says("compiled"),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const GIT: Test = (
    "git runs as it is installed, and from an image: clones are whole",
    |setup| {
        const CLONES: &str = "
            git clone -q git://$HOST:$PORT/source $HOME/clone.$N
            git -C $HOME/clone.$N fsck --strict; test $(git -C $HOME/clone.$N rev-list --count HEAD) = 20
            cmp $HOME/clone.$N/file.20 <(seq 20 40000); rm -r $HOME/clone.$N";
        Program {
            packages: &["git"],
            script: "set -e; export HOME=/tmp; git init -q /tmp/git/source; cd /tmp/git/source
                git config --global user.name A; git config --global user.email a@sietch.test
                for n in $(seq 20); do seq $n 40000 > file.$n; git add .; git commit -qm $n; done
                git repack -qad; exec git daemon --export-all --base-path=/tmp/git --verbose",
            port: 9418,
            ready: Ready::Says("Ready to rumble"),
            load: |address| load::script(address, 6, CLONES),
            ..PROGRAM
        }
        .run(setup)
    },
);

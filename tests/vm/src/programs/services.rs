//! Names, mail boxes of things, doors: servers that are neither databases nor for the web.

use std::path::PathBuf;
use std::process::Command;

use super::{PROGRAM, Program, Ready, load, state_folder};
use crate::clients::together;
use crate::http::HELLO;
use crate::{Test, etcd, rabbitmq};

pub(super) const MOSQUITTO: Test = (
    "mosquitto runs as it is installed, and from an image: messages arrive, each once",
    |setup| {
        const MESSAGES: &str = "
            said=$HOME/mqtt.$N
            timeout 90 stdbuf -oL mosquitto_sub -d -h $HOST -p $PORT -q 2 -C 100 -t load/$N > $said & sub=$!
            until grep -q SUBACK $said; do kill -0 $sub; sleep 0.1; done
            seq -f 'word %g' 100 | mosquitto_pub -h $HOST -p $PORT -q 2 -l -t load/$N
            wait $sub; test $(grep -c '^word' $said) = 100";
        Program {
            packages: &["mosquitto"],
            files: &[(
                "mosquitto.conf",
                "listener 1883 0.0.0.0\nallow_anonymous true\n",
            )],
            script: "exec mosquitto -c /app/mosquitto.conf",
            port: 1883,
            // CONNECT of MQTT 3.1.1 without a name.
            ready: Ready::Answers(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"),
            load: |address| load::script(address, 6, MESSAGES),
            last_words: "terminating",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const UNBOUND: Test = (
    "unbound runs as it is installed, and from an image: each query is answered",
    |setup| {
        Program {
            packages: &["unbound"],
            files: &[(
                "unbound.conf",
                "server:\n interface: 0.0.0.0\n access-control: 0.0.0.0/0 allow\n do-daemonize: no\n \
                 use-syslog: no\n logfile: \"\"\n chroot: \"\"\n verbosity: 1\n num-threads: 2\n \
                 local-data: \"www.sietch.test. A 192.0.2.7\"\n",
            )],
            script: "exec unbound -d -c /app/unbound.conf",
            port: 53,
            ready: Ready::Says("start of service"),
            load: load::dns,
            last_words: "service stopped",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const NAMED: Test = (
    "bind9 runs as it is installed, and from an image: each query is answered",
    |setup| {
        Program {
            packages: &["bind9"],
            files: &[
                (
                    "named.conf",
                    "options { directory \"/var/cache/bind\"; recursion no; listen-on { any; }; };\n\
                     zone \"sietch.test\" { type primary; file \"/app/zone\"; };\n",
                ),
                (
                    "zone",
                    "$TTL 600\n@ SOA ns root 1 600 600 600 600\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.7\n",
                ),
            ],
            script: "exec named -g -u bind -c /app/named.conf",
            port: 53,
            ready: Ready::Says("all zones loaded"),
            load: load::dns,
            last_words: "exiting",
            ..PROGRAM
        }
        .run(setup)
    },
);

/// Keys of the user who comes in.
fn keys() -> Result<PathBuf, String> {
    let folder = state_folder().join("ssh-keys");
    let key = folder.join("key");
    if !key.exists() {
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(key)
            .status();
        made.map_err(|error| format!("ssh-keygen: {error}"))?;
    }
    Ok(folder)
}

pub(super) const SSHD: Test = (
    "openssh-server runs as it is installed, and from an image: commands, terminals, copies",
    |setup| {
        const SESSIONS: &str = "
            options='-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
            door=\"ssh $options -i $HOME/ssh-keys/key -p $PORT root@$HOST\"
            status=0; seq 100000 > $HOME/copy.$N
            $door \"cat > /tmp/copy.$N; cat /tmp/copy.$N; exit 7\" < $HOME/copy.$N > $HOME/back.$N || status=$?
            test $status = 7
            cmp $HOME/copy.$N $HOME/back.$N
            $door -tt 'tty; stty size' < /dev/null | grep -q /dev/pts/";
        Program {
            packages: &["openssh-server"],
            files: &[(
                "sshd_config",
                "HostKey /tmp/host_key\nUsePAM yes\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n",
            )],
            built: Some(keys),
            // Of an image's accounts nobody has said yet when their passwords change.
            script: "set -e; mkdir -p /run/sshd /root/.ssh; chmod 700 /root/.ssh
                test -e /etc/shadow || sed 's/:.*/:*:19000:0:99999:7:::/' /etc/passwd > /etc/shadow
                cp /app/key.pub /root/.ssh/authorized_keys; chmod 600 /root/.ssh/authorized_keys
                ssh-keygen -q -t ed25519 -N '' -f /tmp/host_key
                exec /usr/sbin/sshd -D -e -f /app/sshd_config",
            port: 22,
            ready: Ready::Says("Server listening on 0.0.0.0"),
            load: |address| load::script(address, 3, SESSIONS),
            last_words: "Received signal 15; terminating.",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const VSFTPD: Test = (
    "vsftpd runs as it is installed, and from an image: files come and go whole",
    |setup| {
        const TRANSFERS: &str = "
            test \"$(curl -sSf -m 60 ftp://$HOST:$PORT/file | sha1sum)\" = \"$(seq 200000 | sha1sum)\"
            seq 100000 | curl -sSf -m 60 -T - ftp://$HOST:$PORT/in/file.$N
            curl -sSf -m 60 ftp://$HOST:$PORT/in/ | grep -q file.$N";
        Program {
            packages: &["vsftpd"],
            files: &[(
                "vsftpd.conf",
                "listen=YES\nbackground=NO\nanonymous_enable=YES\nwrite_enable=YES\nanon_upload_enable=YES\n\
                 anon_umask=022\nsecure_chroot_dir=/var/run/vsftpd/empty\n",
            )],
            // Not as process 1, as which it dies of sessions' children that it never made.
            script: "mkdir -p /srv/ftp/in /var/run/vsftpd/empty; chmod 777 /srv/ftp/in; seq 200000 > /srv/ftp/file
                vsftpd /app/vsftpd.conf",
            port: 21,
            ready: Ready::Answers(b""),
            load: |address| load::script(address, 6, TRANSFERS),
            // It asks for namespaces, and does without.
            lacks: &["clone:"],
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const SQUID: Test = (
    "squid runs as it is installed, and from an image: pages arrive through it",
    |setup| {
        Program {
            packages: &["squid", "busybox-static"],
            files: &[
                (
                    "squid.conf",
                    "http_port 3128\nhttp_access allow all\nshutdown_lifetime 1 second\n",
                ),
                ("page.html", "a page from behind"),
            ],
            script: "busybox httpd -p 127.0.0.1:8081 -h /app; exec squid --foreground -d 1 -f /app/squid.conf",
            port: 3128,
            ready: Ready::Answers(HELLO),
            load: |address| load::http(address, "http://127.0.0.1:8081/page.html", "a page from behind"),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const PROMETHEUS: Test = (
    "Prometheus runs as it is installed, and from an image: each query is answered",
    |setup| {
        Program {
            packages: &["prometheus"],
            user: "prometheus",
            data: Some("/var/lib/prometheus/metrics2"),
            script: "exec prometheus --config.file=/etc/prometheus/prometheus.yml \
                --storage.tsdb.path=/var/lib/prometheus/metrics2/data",
            port: 9090,
            ready: Ready::Says("Server is ready to receive web requests"),
            load: |address| load::http(address, "/api/v1/query?query=1%2B1", "success"),
            last_words: "See you next time!",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const ETCD: Test = (
    "etcd runs as it is installed, and from an image: values are kept",
    |setup| {
        Program {
            packages: &["etcd-server"],
            user: "etcd",
            data: Some("/var/lib/etcd"),
            script: "exec etcd --data-dir /var/lib/etcd/default --listen-client-urls http://0.0.0.0:2379 \
                --advertise-client-urls http://127.0.0.1:2379",
            port: 2379,
            ready: Ready::Says("ready to serve client requests"),
            load: |address| together(4, |number| etcd::client(address, number)),
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const RABBITMQ: Test = (
    "RabbitMQ runs as it is installed, and from an image: messages are confirmed and arrive",
    |setup| {
        Program {
            packages: &["rabbitmq-server"],
            user: "rabbitmq",
            data: Some("/var/lib/rabbitmq"),
            files: &[("rabbitmq.conf", "loopback_users = none\n")],
            script:
                "export HOME=/var/lib/rabbitmq RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_LOGS=-
                export RABBITMQ_CONFIG_FILE=/app/rabbitmq.conf
                exec /usr/lib/rabbitmq/bin/rabbitmq-server",
            port: 5672,
            ready: Ready::Says("Server startup complete"),
            load: rabbitmq::load,
            ..PROGRAM
        }
        .run(setup)
    },
);

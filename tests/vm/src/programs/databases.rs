//! Databases and caches.

use std::net::SocketAddr;

use super::{PROGRAM, Program, Ready, load};
use crate::clients::together;
use crate::{Test, memcached, postgres};

pub(super) const POSTGRES: Test = (
    "PostgreSQL runs as it is installed, and from an image: on a volume, under pgbench",
    |setup| {
        fn bench(address: SocketAddr) -> Result<(), String> {
            postgres::bench(address, &["--initialize", "--quiet"])?;
            let said = postgres::bench(address, &["--client=8", "--transactions=25"])?;
            match said.contains("number of failed transactions: 0") {
                true => Ok(()),
                false => Err(said),
            }
        }
        Program {
            packages: &["postgresql"],
            user: "postgres",
            data: Some("/var/lib/postgresql"),
            script: "set -e; export PGDATA=/var/lib/postgresql/base; programs=$(echo /usr/lib/postgresql/*/bin)
                $programs/initdb -U sietch -A trust --no-sync > /dev/null
                echo 'host all all all trust' >> $PGDATA/pg_hba.conf
                exec $programs/postgres -h '*' -k /tmp",
            port: 5432,
            ready: Ready::Says("ready to accept connections"),
            load: bench,
            last_words: "database system is shut down",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const MARIADB: Test = (
    "MariaDB runs as it is installed, and from an image: on a volume, under mariadb-slap",
    |setup| {
        const SLAP: &str = "mariadb-slap --no-defaults --user=sietch --host=$HOST --port=$PORT --concurrency=8 \
            --number-of-queries=400 --auto-generate-sql --auto-generate-sql-load-type=mixed \
            --auto-generate-sql-add-autoincrement --engine=innodb";
        Program {
            packages: &["mariadb-server"],
            user: "mysql",
            data: Some("/var/lib/mysql"),
            files: &[(
                "init.sql",
                "CREATE USER sietch@'%';\nGRANT ALL ON *.* TO sietch@'%';\n",
            )],
            script: "set -e; mariadb-install-db --datadir=/var/lib/mysql/base --skip-test-db > /dev/null
                exec mariadbd --datadir=/var/lib/mysql/base --socket=/tmp/s --pid-file=/tmp/p --bind-address=0.0.0.0 \
                --skip-name-resolve --init-file=/app/init.sql",
            port: 3306,
            ready: Ready::Says("ready for connections"),
            load: |address| load::script(address, 1, SLAP),
            last_words: "Shutdown complete",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const REDIS: Test = (
    "Redis runs as it is installed, and from an image: under redis-benchmark, on a volume",
    |setup| {
        const BENCH: &str =
            "redis-benchmark -h $HOST -p $PORT -q -c 50 -n 4000 -t set,get,lpush,lrange_100 -e";
        Program {
            packages: &["redis-server"],
            user: "redis",
            data: Some("/var/lib/redis"),
            script: "exec redis-server --protected-mode no --dir /var/lib/redis --appendonly yes",
            port: 6379,
            ready: Ready::Answers(b"PING\r\n"),
            load: |address| load::script(address, 1, BENCH),
            last_words: "bye bye",
            ..PROGRAM
        }
        .run(setup)
    },
);

pub(super) const MEMCACHED: Test = (
    "memcached runs as it is installed, and from an image: values are kept",
    |setup| {
        Program {
            packages: &["memcached"],
            script: "exec memcached -t 4 -u nobody",
            port: 11211,
            ready: Ready::Answers(b"version\r\n"),
            load: |address| together(8, |number| memcached::client(address, number)),
            ..PROGRAM
        }
        .run(setup)
    },
);

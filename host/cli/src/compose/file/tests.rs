use super::*;

fn project(text: &str) -> Result<Project, String> {
    Project::parse(
        text,
        Path::new("/srv/shop"),
        None,
        Variables::new("TAG=7\n"),
    )
}

const SHOP: &str = r#"
services:
  web:
    image: oci:./web:${TAG}
    entrypoint: ["/bin/web", "--quiet"]
    command: serve 'two words'
    ports:
      - "127.0.0.1:8080:80"
      - {target: 53, published: 5353, protocol: udp}
    environment: {MODE: fast, WORKERS: 4}
    depends_on:
      db: {condition: service_healthy}
    networks:
      front: {aliases: [shop], ipv4_address: 10.90.1.7}
    deploy: {resources: {limits: {memory: 512mb, cpus: "1.5"}}}
    volumes: ["./static:/static:ro", "data:/data"]
  db:
    command: redis-server --save ''
    stop_grace_period: 1m30s
    healthcheck: {test: ["CMD", "redis-cli", "ping"], interval: 5s, retries: 6}
    networks: [front]
networks:
  front:
    ipam: {config: [{subnet: 10.90.1.0/24}]}
  unused: {}
volumes:
  data: {}
"#;

#[test]
fn services_become_lines_of_run_in_the_order_of_their_dependencies() {
    let project = project(SHOP).expect("a project");
    let names: Vec<&str> = project
        .services
        .iter()
        .map(|own| own.name.as_str())
        .collect();
    assert_eq!((project.name.as_str(), names), ("shop", vec!["db", "web"]));
    let lines = project.services.iter().map(|own| own.arguments.join(" "));
    let lines: Vec<String> = lines.collect();
    assert_eq!(
        lines[0],
        "run -d --name shop-db --net shop_front --network-alias db --stop-timeout 90 \
         --health-cmd [\"CMD\",\"redis-cli\",\"ping\"] --health-interval 5s --health-retries 6 \
         redis-server --save "
    );
    assert_eq!(
        lines[1],
        "run -d --name shop-web --net shop_front --ip 10.90.1.7 --network-alias web \
         --network-alias shop -e MODE=fast -e WORKERS=4 -m 512m --cpus 2 \
         -p 127.0.0.1:8080:80 -p 5353:53/udp -v /srv/shop/./static:/static:ro \
         -v shop_data:/data --entrypoint /bin/web oci:./web:7 --quiet serve two words"
    );
    assert_eq!(project.networks.len(), 1);
    assert_eq!(project.volumes, ["shop_data"]);
}

/// The flags of the only service, between its network and its program.
fn flags_of(fields: &str) -> Result<String, String> {
    let text = format!("services: {{a: {{network_mode: none, command: x, {fields}}}}}");
    let project = project(&text)?;
    let line = project.services[0].arguments.join(" ");
    let line = line.strip_prefix("run -d --name shop-a --net none");
    let flags = line.and_then(|line| line.strip_suffix("x"));
    Ok(flags.expect("a line of run").trim().into())
}

#[test]
fn fields_that_run_has_flags_for_become_these() {
    for (fields, flags) in [
        ("restart: unless-stopped", "--restart unless-stopped"),
        ("restart: 'no'", ""),
        (
            "labels: {tier: back, empty: }",
            "--label empty= --label tier=back",
        ),
        ("labels: [tier=back]", "--label tier=back"),
        ("annotations: {a: 1}", "--annotation a=1"),
        ("hostname: h, domainname: d", "--hostname h --domainname d"),
        (
            "dns: 10.0.0.1, dns_search: [a.test, b.test], dns_opt: ['ndots:2']",
            "--dns 10.0.0.1 --dns-search a.test --dns-search b.test --dns-option ndots:2",
        ),
        (
            "extra_hosts: {db: 10.0.0.3, six: ['fd00::1', 'fd00::2']}",
            "--add-host db=10.0.0.3 --add-host six=fd00::1 --add-host six=fd00::2",
        ),
        ("extra_hosts: ['db:10.0.0.3']", "--add-host db:10.0.0.3"),
        (
            "cap_drop: [ALL], cap_add: [NET_RAW], group_add: [50]",
            "--cap-add NET_RAW --cap-drop ALL --group-add 50",
        ),
        (
            "ulimits: {nproc: 64, nofile: {soft: 10, hard: 20}}",
            "--ulimit nofile=10:20 --ulimit nproc=64",
        ),
        (
            "sysctls: {net.core.somaxconn: 1024}, shm_size: 64mb",
            "--shm-size 64mb --sysctl net.core.somaxconn=1024",
        ),
        (
            "security_opt: ['no-new-privileges:true']",
            "--security-opt no-new-privileges:true",
        ),
        (
            "pull_policy: if_not_present, platform: linux/amd64",
            "--platform linux/amd64 --pull missing",
        ),
        (
            "cpuset: '0,1', oom_score_adj: -500",
            "--cpuset-cpus 0,1 --oom-score-adj -500",
        ),
        (
            "stop_signal: SIGINT, stop_grace_period: 500ms",
            "--stop-signal SIGINT --stop-timeout 1",
        ),
    ] {
        assert_eq!(flags_of(fields).as_deref(), Ok(flags), "{fields}");
    }
}

#[test]
fn health_checks_are_those_of_run() {
    for (fields, flags) in [
        ("test: test -e /ready", "--health-cmd test -e /ready"),
        (
            "test: [CMD-SHELL, a, b], timeout: 2s, start_period: 1m30s, start_interval: 1s",
            "--health-cmd [\"CMD-SHELL\",\"a b\"] --health-timeout 2s --health-start-period 1m30s \
             --health-start-interval 1s",
        ),
        ("interval: 5s, timeout: 0s", "--health-interval 5s"),
        ("test: [NONE]", "--no-healthcheck"),
        ("test: x, disable: true", "--no-healthcheck"),
    ] {
        let fields = format!("healthcheck: {{{fields}}}");
        assert_eq!(flags_of(&fields).as_deref(), Ok(flags), "{fields}");
    }
    for wrong in ["[]", "[CMD]", "[a, b]", "''"] {
        let fields = format!("healthcheck: {{test: {wrong}}}");
        assert!(flags_of(&fields).is_err(), "{wrong}");
    }
}

#[test]
fn an_image_may_say_how_it_is_asked_unless_the_file_turns_it_off() {
    let with = |fields: &str| {
        project(&format!(
            "services: {{a: {{command: x, depends_on: {{b: {{condition: service_healthy}}}}}}, \
             b: {{{fields}}}}}"
        ))
    };
    assert!(with("image: 'oci:./b'").is_ok());
    assert!(with("command: x, healthcheck: {test: y}").is_ok());
    for never in [
        "image: 'oci:./b', healthcheck: {disable: true}",
        "command: x, healthcheck: {interval: 5s}",
    ] {
        let sentence = with(never).expect_err(never);
        assert!(sentence.contains("has no healthcheck"), "{sentence}");
    }
}

#[test]
fn networks_and_volumes_have_names_that_are_names() {
    for wrong in ["user", "none", "tap=eth0", "'dgram=/../x,y'", "../../etc"] {
        let text = format!("services: {{a: {{command: x}}}}\nnetworks: {{n: {{name: {wrong}}}}}");
        let sentence = project(&text).expect_err(wrong);
        assert!(sentence.starts_with("networks.n: "), "{sentence}");
    }
    for wrong in ["../../../etc", "/etc", "./d", "''"] {
        let text = format!("services: {{a: {{command: x}}}}\nvolumes: {{d: {{name: {wrong}}}}}");
        let sentence = project(&text).expect_err(wrong);
        assert!(sentence.starts_with("volumes.d: "), "{sentence}");
    }
}

#[test]
fn all_that_is_not_supported_is_named_in_one_sentence() {
    let text = "services:\n  a:\n    command: 'true'\n    privileged: true\n    networks: [default, b]\n\
        \x20   x-note: mine\nsecrets: {}\nnetworks: {b: {internal: true}}\n";
    assert_eq!(
        project(text).unwrap_err(),
        "Sietch does not support what it asks for: secrets, networks.b.internal, \
         services.a.privileged."
    );
}

#[test]
fn a_service_is_on_several_networks_and_leads_out_by_the_first() {
    let text = "services: {a: {command: x, networks: {b: {aliases: [y, a]}, c: {aliases: [y, z]}}}}\n\
        networks: {b: {}, c: {name: big}}\n";
    let project = project(text).expect("a project");
    assert_eq!(
        project.services[0].arguments.join(" "),
        "run -d --name shop-a --net shop_b --net big --network-alias a --network-alias y \
         --network-alias z x"
    );
    assert_eq!(project.networks.len(), 2);
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (text, words) in [
        ("services: [1]", "services should be a mapping."),
        (
            "services: {a: {}}",
            "services.a has neither an image nor a command",
        ),
        (
            "services: {a: {command: x, networks: [n]}}",
            "a is on n, which is no network.",
        ),
        (
            "services: {a: {command: x, depends_on: [b]}}",
            "a depends on b",
        ),
        (
            "services: {a: {command: x, volumes: ['v:/v']}}",
            "names the volume v, which is not listed.",
        ),
        (
            "services: {a: {command: x, ports: ['1:x']}}",
            "services.a: invalid value '1:x'",
        ),
        (
            "services: {a: {command: x, stop_grace_period: 5}}",
            "should be a time",
        ),
        (
            "services: {a: {command: '${MISSING_HERE:?set it}'}}",
            "The variable MISSING_HERE is not set: set it.",
        ),
        (
            "services: {a: {command: x, depends_on: {b: {condition: service_healthy}}}, b: {command: x}}",
            "a waits until b is healthy, which has no healthcheck.",
        ),
        (
            "services: {a: {command: x, stop_grace_period: 18000000000000000000s18000000000000000000s}}",
            "should be a time",
        ),
        (
            "services: {a: {command: x, pull_policy: daily}}",
            "Sietch does not support what it asks for: services.a.pull_policy.",
        ),
        ("services: {a", "It is not YAML"),
    ] {
        let sentence = project(text).expect_err(text);
        assert!(sentence.contains(words), "{text}: {sentence}");
    }
}

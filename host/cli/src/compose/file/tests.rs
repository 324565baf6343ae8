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
        "run -d --name shop-db --net shop_front --network-alias db redis-server --save "
    );
    assert_eq!(
        lines[1],
        "run -d --name shop-web --net shop_front --ip 10.90.1.7 --network-alias web \
         --network-alias shop -e MODE=fast -e WORKERS=4 -m 512m --cpus 2 \
         -p 127.0.0.1:8080:80 -p 5353:53/udp -v /srv/shop/./static:/static:ro \
         -v shop_data:/data --entrypoint /bin/web oci:./web:7 --quiet serve two words"
    );
    assert_eq!(project.services[0].stop_seconds, 90);
    assert_eq!(project.networks.len(), 1);
    assert_eq!(project.volumes, ["shop_data"]);
}

#[test]
fn all_that_is_not_supported_is_named_in_one_sentence() {
    let text = "services:\n  a:\n    command: 'true'\n    privileged: true\n    networks: [default, b]\n\
        \x20   x-note: mine\nsecrets: {}\nnetworks: {b: {internal: true}}\n";
    assert_eq!(
        project(text).unwrap_err(),
        "Sietch does not support what it asks for: secrets, networks.b.internal, \
         services.a.privileged, services.a.networks with more than one network."
    );
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
        ("services: {a", "It is not YAML"),
    ] {
        let sentence = project(text).expect_err(text);
        assert!(sentence.contains(words), "{text}: {sentence}");
    }
}

use super::*;

fn words(path: &str) -> Words {
    let words = path.split('/').filter(|word| !word.is_empty());
    words.map(|word| word.as_bytes().to_vec()).collect()
}

fn entry(path: &str, kind: Kind) -> Entry {
    Entry {
        path: words(path),
        kind,
        meta: Meta::default(),
    }
}

fn file(path: &str) -> Entry {
    entry(path, Kind::File { bytes: 1 })
}

fn folder(path: &str) -> Entry {
    entry(path, Kind::Directory)
}

fn symlink(path: &str, target: &str) -> Entry {
    entry(path, Kind::Symlink(target.into()))
}

fn hard_link(path: &str, target: &str) -> Entry {
    entry(path, Kind::HardLink(words(target)))
}

fn merged(layers: &[Vec<Entry>]) -> Result<Tree> {
    let mut tree = Tree::new();
    for (layer, entries) in layers.iter().enumerate() {
        for (number, entry) in entries.iter().enumerate() {
            tree.apply((layer, number), entry.clone())?;
        }
    }
    Ok(tree)
}

/// Which entry has the bytes of the file at `path`.
fn place(tree: &Tree, path: &str) -> Option<Place> {
    match tree.node(tree.find(&words(path)).unwrap()?).content {
        Content::File { place, .. } => place,
        _ => None,
    }
}

fn is_there(tree: &Tree, path: &str) -> bool {
    tree.find(&words(path)).unwrap().is_some()
}

#[test]
fn a_higher_layer_replaces_files_and_adds_to_directories() {
    let lower = vec![folder("etc"), file("etc/a"), file("etc/b")];
    let tree = merged(&[lower, vec![folder("etc"), file("etc/b"), file("new/c")]]).unwrap();
    assert_eq!(place(&tree, "etc/a"), Some((0, 1)));
    assert_eq!(place(&tree, "etc/b"), Some((1, 1)));
    assert_eq!(place(&tree, "new/c"), Some((1, 2)));
    assert_eq!(tree.wanted().len(), 3);
}

#[test]
fn a_white_out_removes_what_lower_layers_brought_wherever_it_stands() {
    let lower = || vec![file("d/a"), file("d/b"), file("x")];
    for upper in [
        vec![file("d/a"), file(".wh.x"), file("d/.wh.b"), file("d/.wh.a")],
        vec![file("d/.wh.a"), file("d/.wh.b"), file("d/a"), file(".wh.x")],
    ] {
        let tree = merged(&[lower(), upper]).unwrap();
        assert!(place(&tree, "d/a").is_some_and(|(layer, _)| layer == 1));
        assert!(!is_there(&tree, "d/b") && !is_there(&tree, "x"));
    }
}

#[test]
fn an_opaque_directory_keeps_only_what_its_own_layer_brought() {
    let lower = || vec![file("d/a"), file("d/sub/b"), file("e")];
    for upper in [
        vec![file("d/new"), file("d/sub/c"), file("d/.wh..wh..opq")],
        vec![file("d/.wh..wh..opq"), file("d/new"), file("d/sub/c")],
    ] {
        let tree = merged(&[lower(), upper]).unwrap();
        assert!(!is_there(&tree, "d/a") && !is_there(&tree, "d/sub/b"));
        assert!(is_there(&tree, "d/new") && is_there(&tree, "d/sub/c") && is_there(&tree, "e"));
    }
}

#[test]
fn a_directory_that_is_replaced_by_a_file_loses_what_it_held() {
    let tree = merged(&[vec![file("d/a")], vec![file("d")], vec![folder("d")]]).unwrap();
    assert!(is_there(&tree, "d") && !is_there(&tree, "d/a"));
    assert!(tree.wanted().is_empty());
}

#[test]
fn a_hard_link_is_one_file_though_it_is_of_a_lower_layer() {
    let tree = merged(&[
        vec![file("a")],
        vec![hard_link("b", "a")],
        vec![file(".wh.a")],
    ])
    .unwrap();
    assert_eq!(place(&tree, "b"), Some((0, 0)));
    assert!(!is_there(&tree, "a"));
    let to_nothing = merged(&[vec![hard_link("b", "a")]]).unwrap_err();
    assert!(to_nothing.contains("not there"), "{to_nothing}");
    assert!(merged(&[vec![folder("a"), hard_link("b", "a")]]).is_err());
}

#[test]
fn links_on_the_way_lead_within_the_image_only() {
    let lower = vec![
        symlink("lib", "usr/lib"),
        symlink("out", "/../../etc"),
        symlink("up", "../.."),
    ];
    let upper = vec![file("lib/a"), file("out/passwd"), file("up/b")];
    let tree = merged(&[lower, upper]).unwrap();
    assert!(is_there(&tree, "usr/lib/a") && is_there(&tree, "etc/passwd") && is_there(&tree, "b"));
}

#[test]
fn the_last_word_of_a_path_is_not_followed() {
    let tree = merged(&[vec![file("a"), symlink("l", "a")], vec![file("l")]]).unwrap();
    assert_eq!(place(&tree, "a"), Some((0, 0)));
    assert_eq!(place(&tree, "l"), Some((1, 0)));
}

#[test]
fn links_in_a_circle_are_refused() {
    let circle = merged(&[vec![symlink("a", "b"), symlink("b", "a"), file("a/x")]]);
    assert!(circle.unwrap_err().contains("circle"));
}

#[test]
fn a_node_is_met_once_and_after_its_directory() {
    let tree = merged(&[vec![file("d/e/a"), hard_link("b", "d/e/a")]]).unwrap();
    let order = tree.reachable();
    let at = |path: &str| {
        let node = tree.find(&words(path)).unwrap().unwrap();
        order.iter().position(|&other| other == node).unwrap()
    };
    assert_eq!(order.len(), 4);
    assert!(at("d") < at("d/e"));
}

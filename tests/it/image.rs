//! The image's recipe, as far as it can be read without building it.

/// The layer of dependencies builds with empty files in place of the sources;
/// cargo refuses a manifest that names one which is not there.
#[test]
fn the_layer_of_dependencies_has_a_file_for_every_target() {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let recipe = include_str!("../../Dockerfile");
    let layer = recipe.split("COPY src src").next().unwrap();
    let mut targets = 0;
    for kind in ["test", "bench"] {
        for target in manifest[kind].as_array().unwrap() {
            let name = target["name"].as_str().unwrap();
            let of_name = format!("{kind}es/{name}.rs");
            let path = target
                .get("path")
                .map_or(of_name.as_str(), |path| path.as_str().unwrap());
            assert!(layer.contains(&format!(" {path}")), "`{path}` is missing");
            targets += 1;
        }
    }
    assert!(targets > 3);
}

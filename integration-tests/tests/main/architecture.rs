//! The rules between modules, as `ARCHITECTURE.md` states them: who may import whom, and where each driver is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::TestResult;

/// Module of the hub → modules of the hub it may import. A module may always import itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("api", &["domain"]),
    ("yaml", &["domain"]),
    ("clock", &["domain"]),
    ("lifecycle", &["domain"]),
    ("config", &["domain", "yaml"]),
    ("store", &["domain", "clock", "lifecycle", "config"]),
    ("script", &["domain", "clock", "lifecycle", "config"]),
    ("documents", &["domain", "store", "clock", "lifecycle", "yaml"]),
    ("access", &["domain", "api", "store", "clock", "lifecycle"]),
    ("sources::builtin", &["domain", "clock", "lifecycle", "documents"]),
    ("sources::configured", &["domain", "clock", "lifecycle", "documents", "store", "yaml"]),
    ("sources::feet", &["domain", "clock", "lifecycle", "config", "store"]),
    ("dispatch", &["domain", "clock", "lifecycle"]),
    (
        "web",
        &[
            "domain",
            "api",
            "yaml",
            "clock",
            "lifecycle",
            "documents",
            "store",
            "dispatch",
            "access",
            "sources::feet",
            "sources::configured",
        ],
    ),
    ("cli", &["domain", "api", "yaml", "config", "clock", "app", "access", "store", "lifecycle"]),
    (
        "app",
        &[
            "domain",
            "api",
            "clock",
            "lifecycle",
            "config",
            "store",
            "script",
            "documents",
            "access",
            "sources::builtin",
            "sources::configured",
            "sources::feet",
            "dispatch",
            "web",
        ],
    ),
];

/// Driver crate → the only places of the workspace that may name it.
const DRIVERS: &[(&str, &[&str])] = &[
    ("rusqlite", &["hub/src/store/sqlite"]),
    ("rquickjs", &["hub/src/script"]),
    ("axum", &["hub/src/web"]),
    ("reqwest", &["hub/src/cli/client", "hub/src/sources/configured", "foot/src/servers", "shared/mcp"]),
    ("notify", &["hub/src/documents"]),
    ("granit_parser", &["hub/src/yaml"]),
    ("landlock", &["hub/src/script", "shared/launcher/src/sandbox"]),
    ("seccompiler", &["hub/src/script", "shared/launcher/src/sandbox"]),
    ("tokio_tungstenite", &["foot/src"]),
];

#[test]
fn modules_import_only_what_the_table_allows() -> TestResult {
    let root = workspace()?.join("hub/src");
    let table: BTreeMap<&str, BTreeSet<&str>> =
        MAY_IMPORT.iter().map(|(module, may)| (*module, may.iter().copied().collect())).collect();
    let mut breaches = Vec::new();
    let mut edges = 0;
    for file in rust_files(&root)? {
        let relative = file.strip_prefix(&root)?.with_extension("");
        // Tests in files of their own are tests, as those at the end of a file are.
        if relative.components().any(|part| part.as_os_str() == "tests") {
            continue;
        }
        let module = module_of(&relative.to_string_lossy().replace('/', "::"));
        if ["lib", "main", "sources"].contains(&module.as_str()) {
            continue;
        }
        let Some(may) = table.get(module.as_str()) else {
            breaches.push(format!("{}: `{module}` has no row in the table", file.display()));
            continue;
        };
        for import in crate_imports(without_tests(&fs::read_to_string(&file)?)) {
            let target = module_of(&import);
            edges += 1;
            if target != module && !may.contains(target.as_str()) {
                breaches.push(format!("{}: `{module}` imports `{target}`", file.display()));
            }
        }
    }
    assert!(edges > 100, "only {edges} imports were found: the test reads the wrong folder");
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    Ok(())
}

#[test]
fn each_driver_is_named_in_one_place() -> TestResult {
    let workspace = workspace()?;
    let mut breaches = Vec::new();
    for package in ["hub", "foot", "shared", "shared/mcp", "shared/launcher"] {
        for file in rust_files(&workspace.join(package).join("src"))? {
            let relative = file.strip_prefix(&workspace)?.to_string_lossy().into_owned();
            let text = code_of(&fs::read_to_string(&file)?);
            for (driver, places) in DRIVERS {
                let named = text.contains(&format!("{driver}::")) || text.contains(&format!("use {driver};"));
                if named && !places.iter().any(|place| relative.starts_with(place)) {
                    breaches.push(format!("{relative} names `{driver}`"));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    Ok(())
}

#[test]
fn the_hub_library_and_the_foot_never_see_each_other() -> TestResult {
    let workspace = workspace()?;
    for file in rust_files(&workspace.join("hub/src"))? {
        let text = code_of(&fs::read_to_string(&file)?);
        let is_binary = file.ends_with("hub/src/main.rs");
        assert!(is_binary || !text.contains("footbridge_foot"), "{} names the foot", file.display());
    }
    for file in rust_files(&workspace.join("foot/src"))? {
        assert!(!code_of(&fs::read_to_string(&file)?).contains("footbridge_hub"), "{} names the hub", file.display());
    }
    Ok(())
}

#[test]
fn the_wire_contract_needs_no_runtime() -> TestResult {
    let manifest = fs::read_to_string(workspace()?.join("shared/Cargo.toml"))?;
    let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    let wanted: BTreeSet<&str> = ["base64", "blake3", "serde", "serde_json", "thiserror"].into();
    let section = normal.split("[dependencies]").nth(1).unwrap_or_default();
    let found: BTreeSet<&str> =
        section.lines().filter_map(|line| line.split(['.', ' ']).next()).filter(|name| !name.is_empty()).collect();
    assert_eq!(found, wanted);
    Ok(())
}

#[test]
fn no_file_is_too_long() -> TestResult {
    /// Lines of code of one file, tests and comments not counted.
    const MAX_CODE_LINES: usize = 500;
    let workspace = workspace()?;
    let mut long = Vec::new();
    for package in ["hub", "foot", "shared", "integration-tests"] {
        for file in rust_files(&workspace.join(package))? {
            let text = fs::read_to_string(&file)?;
            let lines =
                without_tests(&text).lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//")).count();
            if lines > MAX_CODE_LINES {
                long.push(format!("{}: {lines}", file.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    Ok(())
}

fn workspace() -> TestResult<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?.to_owned())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The row of the table that a module path belongs to.
fn module_of(path: &str) -> String {
    let mut segments = path.split("::");
    match (segments.next(), segments.next()) {
        (Some("sources"), Some(source)) => format!("sources::{source}"),
        (Some(first), _) => first.to_owned(),
        (None, _) => String::new(),
    }
}

/// A test may stand on whatever it needs.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

fn code_of(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every path after `crate::` in a file, the branches of `use crate::{a, b::c}` included.
fn crate_imports(text: &str) -> Vec<String> {
    let code = code_of(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            found.extend(branches(group));
        } else if let Some(rest) = rest.strip_prefix("sources::{") {
            found.extend(branches(rest).into_iter().map(|branch| format!("sources::{branch}")));
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect());
        }
    }
    found
}

/// The first-level branches of an import group, without what stands deeper.
fn branches(group: &str) -> Vec<String> {
    let (mut depth, mut branch, mut found) = (0_i32, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.push(std::mem::take(&mut branch)),
            c if depth == 0 && !c.is_whitespace() => branch.push(c),
            _ => {}
        }
    }
    found.push(branch);
    found.into_iter().filter(|branch| !branch.is_empty()).collect()
}

#[test]
fn imports_in_groups_are_seen() {
    let imports =
        crate_imports("use crate::{domain::{a, b}, store};\nuse crate::sources::{feet, builtin::x};\n// crate::no");
    assert_eq!(imports, ["domain::", "store", "sources::feet", "sources::builtin::x"]);
}

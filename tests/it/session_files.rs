//! A session's files over HTTP, on both databases: put, listed, sent whole and in
//! part, taken away, and no way out of the workspace.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Web};
use crate::harness::on_both;

async fn put(web: &Web, path: &str, bytes: impl Into<reqwest::Body>) -> Answer {
    Answer::of(web.request(Method::PUT, path).body(bytes).send().await.unwrap()).await
}

async fn part(web: &Web, path: &str, headers: &[(&str, &str)]) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
    let request = headers
        .iter()
        .fold(web.request(Method::GET, path), |request, (name, value)| {
            request.header(*name, *value)
        });
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap().to_vec())
}

/// The file as a whole, not at all where it is known, and in ranges.
async fn is_sent_in_parts(web: &Web, path: &str, text: &str) {
    let (status, headers, bytes) = part(web, path, &[]).await;
    assert_eq!((status, bytes.as_slice()), (200, text.as_bytes()));
    assert_eq!(headers["content-type"], "text/plain");
    assert_eq!(headers["content-length"], text.len().to_string());
    assert!(
        headers["content-disposition"]
            .to_str()
            .unwrap()
            .starts_with("attachment; filename=\"read me.txt\"")
    );
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let tag = headers["etag"].to_str().unwrap();
    assert_eq!(part(web, path, &[("if-none-match", tag)]).await.0, 304);
    for (range, expected) in [
        ("bytes=4-6", "two"),
        ("bytes=-10", "한국어\n"),
        ("bytes=4-", "two\n한국어\n"),
    ] {
        let (status, headers, bytes) = part(web, path, &[("range", range)]).await;
        assert_eq!(
            (status, std::str::from_utf8(&bytes).unwrap()),
            (206, expected),
            "{range}"
        );
        assert!(
            headers["content-range"]
                .to_str()
                .unwrap()
                .ends_with(&format!("/{}", text.len()))
        );
    }
    assert_eq!(
        part(web, path, &[("range", "bytes=4-6"), ("if-range", "\"other\"")])
            .await
            .0,
        200
    );
    assert_eq!(part(web, path, &[("range", "bytes=999-")]).await.0, 416);
}

#[test]
fn files_are_put_listed_sent_and_taken_away() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let session = web.session().await;
        let files = format!("{session}/files");
        assert_eq!(web.get(&files).await.body["data"], json!([]));
        let text = "one\ntwo\n한국어\n";
        let made = put(&web, &format!("{files}/docs/read me.txt"), text).await;
        assert_eq!(
            (made.status, &made.body["path"], &made.body["bytes"]),
            (201, &json!("docs/read me.txt"), &json!(text.len()))
        );
        assert_eq!(
            put(&web, &format!("{files}/docs%2Fread%20me.txt"), text).await.status,
            200
        );
        put(&web, &format!("{files}/page.html"), "<script>").await;

        let listed = web.get(&files).await.body;
        let names: Vec<&str> = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["path"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["docs", "page.html"]);
        assert_eq!(listed["data"][0]["kind"], "directory");
        let first = web.get(&format!("{files}?limit=1")).await.body;
        let next = web
            .get(&format!(
                "{files}?limit=1&after={}",
                first["next_cursor"].as_str().unwrap()
            ))
            .await
            .body;
        assert_eq!(
            (&next["data"][0]["path"], &next["has_more"]),
            (&json!("page.html"), &json!(false))
        );
        let inner = web.get(&format!("{files}?path=docs")).await.body;
        assert_eq!(inner["data"][0]["path"], "docs/read me.txt");

        let path = format!("{files}/docs/read%20me.txt");
        is_sent_in_parts(&web, &path, text).await;
        let page = part(&web, &format!("{files}/page.html"), &[]).await.1;
        assert!(page["content-disposition"].to_str().unwrap().starts_with("attachment"));

        assert_eq!(
            web.delete(&format!("{files}/docs")).await.status,
            400,
            "it is not empty"
        );
        assert_eq!(web.delete(&path).await.status, 204);
        assert_eq!(web.delete(&format!("{files}/docs")).await.status, 204);
        web.delete(&path).await.is_problem(404, "not_found");
        web.get(&path).await.is_problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn a_file_is_changed_only_if_it_is_the_one_that_is_meant() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let session = web.session().await;
        let path = format!("{session}/files/a.txt");
        let put_if = async |name: &'static str, value: String, bytes: &'static str| {
            let request = web.request(Method::PUT, &path).header(name, value).body(bytes);
            let answer = request.send().await.unwrap();
            let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
            (answer.status().as_u16(), tag)
        };
        assert_eq!(put_if("if-match", "*".to_owned(), "0").await, (412, None));
        let (status, first) = put_if("if-none-match", "*".to_owned(), "1").await;
        let first = first.unwrap();
        assert_eq!(status, 201);
        assert_eq!(part(&web, &path, &[]).await.1["etag"].to_str().unwrap(), first);
        // Who has not seen the file makes none anew, and is told which one is there.
        assert_eq!(
            put_if("if-none-match", "*".to_owned(), "2").await,
            (412, Some(first.clone()))
        );
        let (status, second) = put_if("if-match", first.clone(), "second").await;
        assert_eq!(status, 200);
        assert_eq!(put_if("if-match", first.clone(), "third").await, (412, second.clone()));
        assert_eq!(part(&web, &path, &[]).await.2, b"second");
        put_if("if-match", "nonsense".to_owned(), "x").await;
        let remove = |tag: String| web.request(Method::DELETE, &path).header("if-match", tag).send();
        assert_eq!(remove(first).await.unwrap().status(), 412);
        // Of many who saw the same file one changes it.
        let tries = (0..8).map(|_| put_if("if-match", second.clone().unwrap(), "by one of many"));
        let won = futures::future::join_all(tries).await;
        assert_eq!(won.iter().filter(|(status, _)| *status == 200).count(), 1, "{won:?}");
        let now = part(&web, &path, &[]).await.1["etag"].to_str().unwrap().to_owned();
        assert_eq!(remove(now).await.unwrap().status(), 204);
        web.stop().await;
    });
}

#[test]
fn the_agent_and_its_clients_see_the_same_files() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let session = web.session().await;
        let files = format!("{session}/files");
        put(&web, &format!("{files}/in.txt"), "needle\n").await;
        let input = format!(
            "/tool search_files {}\n/then\n/tool patch {}\n/then\n/tool terminal {}",
            json!({"pattern": "needle"}),
            json!({"path": "in.txt", "old_string": "needle", "new_string": "thread"}),
            json!({"command": "cat in.txt > out.txt"}),
        );
        let turn = web
            .post(&format!("{session}/turns?wait=20"), json!({"input": input}))
            .await;
        assert_eq!(turn.status, 200, "{}", turn.body);
        for name in ["in.txt", "out.txt"] {
            assert_eq!(
                part(&web, &format!("{files}/{name}"), &[]).await.2,
                b"thread\n",
                "{name}"
            );
        }
        web.stop().await;
    });
}

#[test]
fn no_path_leads_out_and_nothing_is_too_large() {
    on_both(async |mut place| {
        place.config.server.max_body_bytes = 1 << 20;
        let web = place.serve().await;
        let session = web.session().await;
        let files = format!("{session}/files");
        put(&web, &format!("{files}/a"), "x").await;
        let root = web
            .server
            .workspace(session.rsplit('/').next().unwrap().parse().unwrap());
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        // As the server's own key lies beside the workspaces.
        let key = root.with_file_name("api-key");
        std::fs::write(&key, "hsk_of_the_server").unwrap();
        std::os::unix::fs::symlink(&key, root.join("key")).unwrap();
        std::os::unix::fs::symlink("../api-key", root.join("near")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        for path in [
            "..%2f..%2fetc%2fpasswd",
            "a%2f..%2f..%2fb",
            "%2fetc%2fpasswd",
            "a%00b",
            "out/passwd",
            "loop",
            "pipe",
            "key",
            "near",
            "out/hostname/x",
        ] {
            for method in [Method::GET, Method::PUT] {
                let sent = web
                    .request(method.clone(), &format!("{files}/{path}"))
                    .body("x")
                    .send()
                    .await
                    .unwrap();
                let answer = Answer::of(sent).await;
                assert!(
                    [400, 404].contains(&answer.status),
                    "{method} {path}: {} {}",
                    answer.status,
                    answer.body
                );
                assert!(!answer.body.to_string().contains("hsk_of"), "{method} {path}");
                // What is there and leads out, or is no file, is told so.
                let there = ["out/passwd", "loop", "pipe", "key", "near"].contains(&path);
                assert!(!there || answer.status == 400, "{method} {path}: {}", answer.status);
            }
        }
        assert_eq!(std::fs::read_to_string(&key).unwrap(), "hsk_of_the_server");
        assert!(std::fs::symlink_metadata(root.join("key")).unwrap().is_symlink());
        assert_eq!(web.get(&format!("{files}?path=out")).await.status, 400);
        assert_eq!(web.get(&format!("{files}?path=..")).await.status, 400);
        put(&web, &format!("{files}/big"), vec![0_u8; 2 << 20])
            .await
            .is_problem(413, "payload_too_large");
        assert_eq!(
            put(&web, &format!("{files}/fits"), vec![0_u8; 1 << 20]).await.status,
            201
        );
        // A link is taken away itself, not what it leads to.
        assert_eq!(web.delete(&format!("{files}/out")).await.status, 204);
        assert!(std::path::Path::new("/etc/passwd").exists());
        web.stop().await;
    });
}

#[test]
fn a_large_file_is_sent_as_it_is_read() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let session = web.session().await;
        let files = format!("{session}/files");
        put(&web, &format!("{files}/a"), "x").await;
        let root = web
            .server
            .workspace(session.rsplit('/').next().unwrap().parse().unwrap());
        std::fs::File::create(root.join("sparse"))
            .unwrap()
            .set_len(2 << 30)
            .unwrap();
        let (status, headers, bytes) = part(&web, &format!("{files}/sparse"), &[("range", "bytes=2147483640-")]).await;
        assert_eq!((status, bytes.len()), (206, 8));
        assert_eq!(headers["content-range"], "bytes 2147483640-2147483647/2147483648");
        let answer = web
            .request(Method::GET, &format!("{files}/sparse"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.content_length(), Some(2 << 30));
        drop(answer);
        let names: Vec<Value> = web.get(&files).await.body["data"].as_array().unwrap().clone();
        assert_eq!(names[1]["bytes"], 2_147_483_648_u64);
        web.stop().await;
    });
}

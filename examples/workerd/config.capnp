# A Worker under plain workerd whose queue binding produces into an edgequeues server:
#   workerd serve config.capnp
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "producer", worker = .producer),
    # One of these a queue: the binding's requests do not say which queue they are for, this header does. Without a
    # Host of its own workerd would send `fake-host`, which the server takes for somebody else's name.
    (name = "jobs", external = (address = "127.0.0.1:8700", http = (injectRequestHeaders = [
      (name = "Host", value = "localhost"),
      (name = "Edgequeues-Queue", value = "demo/jobs"),
      # (name = "Authorization", value = "Bearer eq_..."),  # where the server wants a token
    ]))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8080", http = (), service = "producer")],
);

const producer :Workerd.Worker = (
  modules = [(name = "producer.js", esModule = embed "producer.js")],
  compatibilityDate = "2026-01-01",
  bindings = [(name = "JOBS", queue = "jobs")],
);

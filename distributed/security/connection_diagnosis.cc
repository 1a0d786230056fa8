// SPDX-License-Identifier: Apache-2.0
#include "distributed/security/connection_diagnosis.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "distributed/security/openssl.h"
#include "distributed/security/stream_socket.h"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks SIGPIPE on this thread while it exists: OpenSSL writes to sockets whose other end may be
// closed, and the signal would end the process.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once = {};
    while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

class Diagnosis {
 public:
  Diagnosis(HostPort to, const Credentials& credentials, int timeout_ms)
      : to_(std::move(to)),
        credentials_(credentials),
        settings_(credentials.settings()),
        end_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}

  std::string Run() {
    int error = 0;
    addresses_ = ResolveAddresses(to_, &error);
    if (addresses_ == nullptr) return "";
    return credentials_.tls() ? AsTlsClient() : AsPlainClient();
  }

 private:
  // Facts about a handshake that only OpenSSL's callbacks receive.
  struct HandshakeNotes {
    bool asked_for_certificate =
        false;               // the task asked for a certificate, and this process has none
    std::string expired_on;  // when the server's certificate expired; "" if it has not
  };
  struct Handshake {
    SslContextPtr context;
    std::unique_ptr<StreamSocket> socket;
    SslPtr ssl;
    bool connected = false;   // the TCP connection is open
    bool done = false;        // the TLS handshake is complete
    bool silent = false;      // no answer came in time
    unsigned long error = 0;  // OpenSSL's error
    HandshakeNotes noted;
  };

  int LeftMs() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  std::unique_ptr<StreamSocket> Connect() const {
    int error = 0;
    return ConnectToAny(addresses_.get(), LeftMs(), &error);
  }

  std::string AsPlainClient() {
    if (SpeaksPlain()) return "";
    const Handshake reached = TryTls(/*verify=*/false);
    if (!HasPresentedCertificate(reached)) return "";
    return StrCat("the task speaks TLS, this process does not: give it ", NameOfSetting("tls_ca"),
                  ", the certificate of the cluster's authority");
  }

  std::string AsTlsClient() {
    Handshake shake = TryTls(/*verify=*/true);
    if (!shake.connected || shake.silent) return "";
    if (shake.done) {
      const std::string name = CheckName(shake);
      return name.empty() ? CheckWelcome(&shake) : name;
    }
    const long verified = SSL_get_verify_result(shake.ssl.get());
    if (verified != X509_V_OK) return DescribeDistrust(shake, verified);
    if (SpeaksPlain()) {
      return StrCat(
          "the task does not speak TLS, this process does: start the task with "
          "--tls_cert, --tls_key and --tls_ca, or this process without ",
          NameOfSetting("tls_ca"));
    }
    return Refused(shake);
  }

  // Returns whether an HTTP/2 server answers without TLS.
  bool SpeaksPlain() const {
    const auto socket = Connect();
    if (socket == nullptr) return false;
    if (send(socket->fd(), kHttp2Preface, kHttp2PrefaceBytes, MSG_NOSIGNAL) !=
        static_cast<ssize_t>(kHttp2PrefaceBytes)) {
      return false;
    }
    if (!socket->Await(POLLIN, LeftMs())) return false;
    char first[9];
    const ssize_t count = recv(socket->fd(), first, sizeof(first), 0);
    return count > 0 && IsSettingsFrame(first, static_cast<size_t>(count));
  }

  static bool HasPresentedCertificate(const Handshake& shake) {
    return shake.ssl != nullptr && SSL_get0_peer_certificate(shake.ssl.get()) != nullptr;
  }

  // Repeats `step` as long as it wants to read or write. Returns its last result.
  template <class Step>
  int Drive(Handshake* shake, Step step) const {
    while (true) {
      ERR_clear_error();
      const int result = step();
      if (result > 0) return result;
      const int why = SSL_get_error(shake->ssl.get(), result);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        shake->error = ERR_peek_last_error();
        return result;
      }
      if (shake->socket->Await(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, LeftMs())) continue;
      shake->silent = true;
      return result;
    }
  }

  static HandshakeNotes& NotesOf(const SSL* ssl) {
    return *static_cast<HandshakeNotes*>(SSL_get_app_data(ssl));
  }
  static int NoteRequest(SSL* ssl, X509**, EVP_PKEY**) {
    NotesOf(ssl).asked_for_certificate = true;
    return 0;
  }
  static int NoteExpiry(int verified, X509_STORE_CTX* store) {
    const auto* const ssl = static_cast<const SSL*>(
        X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    if (verified != 1 && X509_STORE_CTX_get_error(store) == X509_V_ERR_CERT_HAS_EXPIRED) {
      const X509* const certificate = X509_STORE_CTX_get_current_cert(store);
      NotesOf(ssl).expired_on = TextOf(*X509_get0_notAfter(certificate));
    }
    return verified;
  }

  Handshake TryTls(bool verify) const {
    Handshake shake;
    shake.socket = Connect();
    shake.connected = shake.socket != nullptr;
    if (!shake.connected) return shake;
    shake.context.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* const context = shake.context.get();
    SSL_CTX_set_client_cert_cb(context, NoteRequest);
    if (verify) {
      SSL_CTX_load_verify_locations(context, settings_.tls_ca.c_str(), nullptr);
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NoteExpiry);
      if (!settings_.tls_cert.empty()) {
        SSL_CTX_use_certificate_chain_file(context, settings_.tls_cert.c_str());
        SSL_CTX_use_PrivateKey_file(context, settings_.tls_key.c_str(), SSL_FILETYPE_PEM);
      }
    }
    shake.ssl.reset(SSL_new(context));
    SSL* const ssl = shake.ssl.get();
    HandshakeNotes noted;
    SSL_set_app_data(ssl, &noted);
    SSL_set_fd(ssl, shake.socket->fd());
    SSL_set_tlsext_host_name(ssl, ExpectedName().c_str());
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl, kHttp2, sizeof(kHttp2));
    shake.done = Drive(&shake, [ssl] { return SSL_connect(ssl); }) > 0;
    shake.noted = std::move(noted);
    SSL_set_app_data(ssl, nullptr);
    return shake;
  }

  const std::string& ExpectedName() const {
    return settings_.tls_server_name.empty() ? to_.host : settings_.tls_server_name;
  }

  std::string DescribeDistrust(const Handshake& shake, long verified) const {
    const std::string why = X509_verify_cert_error_string(verified);
    if (verified == X509_V_ERR_CERT_HAS_EXPIRED) {
      return StrCat("the task's certificate expired on ", shake.noted.expired_on,
                    ": renew the certificate in the task's --tls_cert");
    }
    if (verified == X509_V_ERR_CERT_NOT_YET_VALID) {
      return "the task's certificate is not valid yet: look at the clocks of both hosts";
    }
    return StrCat("the task's certificate does not come from an authority in '", settings_.tls_ca,
                  "' (", why, "): give ", NameOfSetting("tls_ca"),
                  " the authority that signed the task's --tls_cert");
  }

  // Returns the names that the certificate is valid for.
  static std::string NamesOf(X509* certificate) {
    std::vector<std::string> names;
    auto* const all = static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
    for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
      const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
      if (name->type == GEN_DNS) {
        const ASN1_STRING* const text = name->d.dNSName;
        names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                           static_cast<size_t>(ASN1_STRING_length(text)));
      } else if (name->type == GEN_IPADD) {
        names.emplace_back("IP addresses");
      }
    }
    GENERAL_NAMES_free(all);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names.empty() ? "no name" : absl::StrJoin(names, ", ");
  }

  std::string CheckName(const Handshake& shake) const {
    X509* const certificate = SSL_get0_peer_certificate(shake.ssl.get());
    const std::string& name = ExpectedName();
    const bool fits = X509_check_ip_asc(certificate, name.c_str(), 0) == 1 ||
                      X509_check_host(certificate, name.data(), name.size(), 0, nullptr) == 1;
    if (fits) return "";
    return StrCat("the task's certificate is not for '", name, "' but for ", NamesOf(certificate),
                  ": make the task's --tls_cert with this name in its subjectAltName, or give ",
                  NameOfSetting("tls_server_name"), " a name that it has");
  }

  // Checks the server's first answer. Since TLS 1.3, the server checks the client's certificate
  // only after the handshake seems complete to the client.
  std::string CheckWelcome(Handshake* shake) const {
    SSL* const ssl = shake->ssl.get();
    Drive(shake, [ssl] { return SSL_write(ssl, kHttp2Preface, kHttp2PrefaceBytes); });
    char first[9];
    const int count = Drive(shake, [&] { return SSL_read(ssl, first, sizeof(first)); });
    if (count > 0 || shake->silent) return "";
    return Refused(*shake);
  }

  std::string Refused(const Handshake& shake) const {
    if (shake.noted.asked_for_certificate) {
      return StrCat("the task wants a certificate of its clients (--tls_client_auth): give ",
                    NameOfSetting("tls_cert"), " and ", NameOfSetting("tls_key"));
    }
    const char* const reason = ERR_reason_error_string(shake.error);
    const std::string why = reason == nullptr ? "it closed the connection" : reason;
    if (!settings_.tls_cert.empty() && shake.done) {
      return StrCat("the task refuses this process's certificate '", settings_.tls_cert, "' (", why,
                    "): it must come from an authority in the task's --tls_ca and be valid");
    }
    return StrCat("TLS with the task fails: ", why);
  }

  const HostPort to_;
  const Credentials& credentials_;
  const SecuritySettings& settings_;
  const Clock::time_point end_;
  AddressList addresses_{nullptr, nullptr};
};

}  // namespace

std::string DiagnoseConnection(const std::string& address, const Credentials& credentials,
                               int timeout_ms) {
  const StatusOr<HostPort> to = HostPort::Parse(address);
  const WithoutPipeSignal without_signal;
  return to.ok() ? Diagnosis(*to, credentials, timeout_ms).Run() : "";
}

}  // namespace penstock

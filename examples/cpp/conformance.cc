// Plays the conformance vectors: each message is the same in both forms, and each call is answered as written.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/grpcpp.h>

#include "apportion/v1/service.grpc.pb.h"
#include "apportion/v1alpha1/service.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace {

namespace fs = std::filesystem;
namespace v1 = apportion::v1;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;
using Decision = v1::DecisionService::Stub;
using Snapshots = v1::SnapshotService::Stub;
using Insight = apportion::v1alpha1::InsightService::Stub;

// The calls of all services.
struct Stubs {
  std::unique_ptr<Decision> decision;
  std::unique_ptr<Snapshots> snapshots;
  std::unique_ptr<Insight> insight;

  Decision& of(Decision*) { return *decision; }
  Snapshots& of(Snapshots*) { return *snapshots; }
  Insight& of(Insight*) { return *insight; }
};

std::string slurp(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void check(const Message& given, const Message& expected) {
  if (!MessageDifferencer::Equals(given, expected)) throw std::runtime_error("answered with " + given.ShortDebugString());
}

// A vector's files of one role, by number.
template <typename M>
std::map<int, M> read(const fs::path& folder, const std::string& role) {
  std::map<int, M> messages;
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto file = entry.path();
    if (file.extension() != ".binpb" || file.stem().extension() != "." + role) continue;
    auto& message = messages[std::stoi(file.filename())];
    M text;
    if (!message.ParseFromString(slurp(file)) ||
        !google::protobuf::util::JsonStringToMessage(slurp(file.replace_extension(".json")), &text).ok()) {
      throw std::runtime_error(file.string() + ": cannot be read");
    }
    if (!MessageDifferencer::Equals(message, text)) throw std::runtime_error(file.string() + ": the forms differ");
  }
  return messages;
}

void limit(grpc::ClientContext& context) { context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10)); }

void check(const grpc::Status& given, const fs::path& folder) {
  const auto expected = read<google::rpc::Status>(folder, "status");
  google::rpc::Status details;
  details.ParseFromString(given.error_details());
  if (given.ok() != expected.empty()) throw std::runtime_error("ended with " + given.error_message());
  if (!expected.empty()) check(details, expected.begin()->second);
}

template <typename Stub, typename Request, typename Response>
std::function<void(Stubs&, const fs::path&)> unary(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*)) {
  return [method](Stubs& stubs, const fs::path& folder) {
    grpc::ClientContext context;
    limit(context);
    Response response;
    check((stubs.of(static_cast<Stub*>(nullptr)).*method)(&context, read<Request>(folder, "request").at(1), &response), folder);
    for (const auto& [number, expected] : read<Response>(folder, "response")) check(response, expected);
  };
}

void download(Stubs& stubs, const fs::path& folder) {
  grpc::ClientContext context;
  limit(context);
  const auto stream = stubs.snapshots->DownloadSnapshot(&context, read<v1::DownloadSnapshotRequest>(folder, "request").at(1));
  for (const auto& [number, expected] : read<v1::DownloadSnapshotResponse>(folder, "response")) {
    v1::DownloadSnapshotResponse response;
    stream->Read(&response);
    check(response, expected);
  }
  check(stream->Finish(), folder);
}

void upload(Stubs& stubs, const fs::path& folder) {
  grpc::ClientContext context;
  limit(context);
  v1::UploadSnapshotResponse response;
  const auto stream = stubs.snapshots->UploadSnapshot(&context, &response);
  for (const auto& [number, request] : read<v1::UploadSnapshotRequest>(folder, "request")) stream->Write(request);
  stream->WritesDone();
  check(stream->Finish(), folder);
  for (const auto& [number, expected] : read<v1::UploadSnapshotResponse>(folder, "response")) check(response, expected);
}

void converse(Stubs& stubs, const fs::path& folder) {
  grpc::ClientContext context;
  limit(context);
  const auto stream = stubs.decision->RunSession(&context);
  const auto responses = read<v1::RunSessionResponse>(folder, "response");
  for (const auto& [number, request] : read<v1::RunSessionRequest>(folder, "request")) {
    stream->Write(request);
    const auto expected = responses.find(number + 1);
    if (expected == responses.end()) continue;
    v1::RunSessionResponse response;
    stream->Read(&response);
    check(response, expected->second);
  }
  stream->WritesDone();
  check(stream->Finish(), folder);
}

const std::map<std::string, std::function<void(Stubs&, const fs::path&)>> kMethods = {
    {"EvaluateShares", unary(&Decision::EvaluateShares)},
    {"CheckEnqueue", unary(&Decision::CheckEnqueue)},
    {"Explain", unary(&Decision::Explain)},
    {"Plan", unary(&Decision::Plan)},
    {"Remedies", unary(&Decision::Remedies)},
    {"Forecast", unary(&Decision::Forecast)},
    {"Simulate", unary(&Decision::Simulate)},
    {"ListSnapshots", unary(&Snapshots::ListSnapshots)},
    {"GetHistory", unary(&Insight::GetHistory)},
    {"GetUsage", unary(&Insight::GetUsage)},
    {"DownloadSnapshot", download},
    {"UploadSnapshot", upload},
    {"RunSession", converse},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  // The details of errors are known to the reader of JSON once they are linked.
  google::rpc::ErrorInfo::descriptor();
  const auto channel = grpc::CreateChannel(arguments[1], grpc::InsecureChannelCredentials());
  Stubs stubs{v1::DecisionService::NewStub(channel), v1::SnapshotService::NewStub(channel), apportion::v1alpha1::InsightService::NewStub(channel)};
  int passed = 0, failed = 0;
  for (const auto& method : fs::directory_iterator(arguments[2])) {
    if (!method.is_directory()) continue;
    for (const auto& vector : fs::directory_iterator(method.path())) {
      try {
        kMethods.at(method.path().filename())(stubs, vector.path());
        ++passed;
      } catch (const std::exception& fault) {
        ++failed;
        std::cout << vector.path().string() << ": " << fault.what() << '\n';
      }
    }
  }
  std::cout << passed << " passed, " << failed << " failed\n";
  return failed > 0 || passed == 0 ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "support/msccl_files.h"

#include <spdlog/fmt/fmt.h>

namespace trainyard {
namespace {

struct FileStep {
  const char* type = "nop";
  char buffer = 'i';  // Of the source and, but for a copy or reduction, the target.
  int offset = 0;
  char target_buffer = 'i';
  int target_offset = 0;
  int count = 1;
  int depends_on_block = -1;
  int depends_on_step = -1;
  bool is_depended_on = false;
};

FileStep at(const char* type, char buffer, int offset) {
  return {.type = type,
          .buffer = buffer,
          .offset = offset,
          .target_buffer = buffer,
          .target_offset = offset};
}

std::string line_of(int number, const FileStep& step) {
  return fmt::format(
      "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
      "cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
      number, step.type, step.buffer, step.offset, step.target_buffer, step.target_offset,
      step.count, step.depends_on_block, step.depends_on_step, step.is_depended_on ? 1 : 0);
}

class FileBuilder {
 public:
  FileBuilder(const char* name, const char* collective, int chunks, int gpus)
      : text_(fmt::format("<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" "
                          "nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" inplace=\"1\">\n",
                          name, chunks, gpus, collective)) {}

  void begin_gpu(int id, int inputs, int outputs, int scratch) {
    text_ += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", id,
                         inputs, outputs, scratch);
    blocks_ = 0;
  }
  void begin_block(int send, int receive) {
    text_ += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", blocks_++, send,
                         receive);
    steps_ = 0;
  }
  void add(const FileStep& step) { text_ += line_of(steps_++, step); }
  void end_block() { text_ += "    </tb>\n"; }
  void end_gpu() { text_ += "  </gpu>\n"; }
  std::string text() && { return text_ + "</algo>\n"; }

 private:
  std::string text_;
  int blocks_ = 0;
  int steps_ = 0;
};

}  // namespace

std::string msccl_ring_all_reduce(int gpus) {
  FileBuilder file("ring", "allreduce", gpus, gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    file.begin_gpu(gpu, gpus, 0, 0);
    file.begin_block((gpu + 1) % gpus, (gpu + gpus - 1) % gpus);
    for (int round = 0; round <= 2 * gpus - 2; ++round) {
      const char* const type = round == 0             ? "s"
                               : round < gpus - 1     ? "rrs"
                               : round == gpus - 1    ? "rrcs"
                               : round < 2 * gpus - 2 ? "rcs"
                                                      : "r";
      file.add(at(type, 'i', (gpu + 2 * gpus - round) % gpus));
    }
    file.end_block();
    file.end_gpu();
  }
  return std::move(file).text();
}

std::string msccl_all_pairs_all_reduce(int gpus) {
  FileBuilder file("allpairs", "allreduce", gpus, gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    file.begin_gpu(gpu, gpus, 0, gpus - 1);
    // Block p - 1 is that of the peer p further; the last one adds up.
    for (int further = 1; further < gpus; ++further) {
      const int peer = (gpu + further) % gpus;
      file.begin_block(peer, peer);
      file.add(at("s", 'i', peer));
      FileStep part = at("r", 's', further - 1);
      part.is_depended_on = true;
      file.add(part);
      FileStep sum = at("s", 'i', gpu);
      sum.depends_on_block = gpus - 1;
      sum.depends_on_step = gpus - 2;
      file.add(sum);
      file.add(at("r", 'i', peer));
      file.end_block();
    }
    file.begin_block(-1, -1);
    for (int further = 1; further < gpus; ++further) {
      FileStep add = at("re", 's', further - 1);
      add.target_buffer = 'i';
      add.target_offset = gpu;
      add.depends_on_block = further - 1;
      add.depends_on_step = 1;
      add.is_depended_on = further == gpus - 1;
      file.add(add);
    }
    file.end_block();
    file.end_gpu();
  }
  return std::move(file).text();
}

std::string msccl_doubling_all_gather(int gpus) {
  FileBuilder file("doubling", "allgather", gpus, gpus);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    file.begin_gpu(gpu, 1, gpus, 0);
    int block = 0;
    for (int distance = 1; distance < gpus; distance *= 2, ++block) {
      const int peer = gpu ^ distance;
      file.begin_block(peer, peer);
      FileStep own = at("s", 'o', gpu / distance * distance);
      own.count = distance;
      own.depends_on_block = block - 1;
      own.depends_on_step = block > 0 ? 1 : -1;
      file.add(own);
      FileStep others = at("r", 'o', peer / distance * distance);
      others.count = distance;
      others.depends_on_block = block - 1;
      others.depends_on_step = block > 0 ? 1 : -1;
      others.is_depended_on = 2 * distance < gpus;
      file.add(others);
      file.end_block();
    }
    file.end_gpu();
  }
  return std::move(file).text();
}

}  // namespace trainyard

-- Puts new jobs under `copter slurm run`: beside slurm.conf, with JobSubmitPlugins=lua.
--
-- A job of PARTITIONS, or one whose comment begins with "copter:", gets a begin time one lease ahead. The controller
-- starts it sooner, or renews the lease. Without a controller (ALIVE is old or absent) jobs are left as they are, so that
-- nothing waits for a controller that is not there.

local LEASE_S = 120                          -- as --lease of the controller
local ALIVE = "/run/copter-slurm.alive"      -- as --alive of the controller
local OLD_S = 30                             -- age of ALIVE at which the controller counts as dead
local PARTITIONS = {}                        -- such as { gpu = true }; as --partition of the controller

local function is_alive()
  local file = io.open(ALIVE, "r")
  if file == nil then
    return false
  end
  local told = tonumber(file:read("*l"))
  file:close()
  return told ~= nil and os.time() - told < OLD_S
end

local function is_under(job)
  return string.sub(job.comment or "", 1, 7) == "copter:" or PARTITIONS[job.partition or ""] == true
end

function slurm_job_submit(job, partitions, user)
  if is_under(job) and is_alive() then
    local begin = os.time() + LEASE_S
    if job.begin_time == nil or job.begin_time < begin then
      job.begin_time = begin
    end
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, before, partitions, user)
  return slurm.SUCCESS
end
